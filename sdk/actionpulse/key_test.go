package actionpulse_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

// awkward are keys that are allowed and easily harmed on their way.
var awkward = []string{
	"order-42:email", "x", `"quoted"`, "a b", "comma,semi;colon", "ключ-42", "κλειδί", "e\u0301", "🎉", "%2F+%20",
	strings.Repeat("ж", actionpulse.MaxKey), "\u00a0x\u00a0",
}

// refusedKeys must never be sent: the server would refuse them, or HTTP would
// make another key of them.
var refusedKeys = []string{
	"", " ", "\t", "\u00a0", " x", "x ", "x\n", "a\x00b", "a\tb", "a\x7fb", "a\u0085b", "a\xffb", strings.Repeat("ж", actionpulse.MaxKey+1),
}

func TestKeysArriveAsTheyAre(t *testing.T) {
	t.Parallel()
	s := play(t, says(200, something))
	c := newClients(t, s.URL)
	for i, key := range awkward {
		moved, err := c.Customers.TopUp(t.Context(), "ada", actionpulse.TopUp{}, actionpulse.WithKey(key))
		if err != nil {
			t.Fatalf("%q: %v", key, err)
		}
		if got := s.requests()[i].header.Get("Idempotency-Key"); got != key || moved.IdempotencyKey != key {
			t.Errorf("%q has arrived as %q and was returned as %q", key, got, moved.IdempotencyKey)
		}
	}
}

func TestKeysThatAreRefused(t *testing.T) {
	t.Parallel()
	s := play(t, says(200, something))
	c := newClients(t, s.URL)
	for _, key := range refusedKeys {
		option := actionpulse.WithKey(key)
		_, topup := c.Customers.TopUp(t.Context(), "ada", actionpulse.TopUp{}, option)
		_, run := c.Executions.Execute(t.Context(), actionpulse.Execute{Flow: "f"}, option)
		_, begun := c.Executions.Start(t.Context(), actionpulse.Execute{Flow: "f"}, option)
		for _, err := range []error{topup, run, begun} {
			e := asError(t, err)
			if e.Code != api.CodeInvalidRequest || e.Applied != actionpulse.AppliedNo || e.Attempts != 0 || e.Status != 0 {
				t.Errorf("%q: %+v", key, e)
			}
		}
	}
	if got := s.requests(); len(got) != 0 {
		t.Errorf("%d requests were sent", len(got))
	}
}

func TestKeysOfDeployMarkers(t *testing.T) {
	t.Parallel()
	for key, allowed := range map[string]bool{
		"12345678": true, "!~#$%&'()": true, strings.Repeat("a", 128): true,
		"1234567": false, strings.Repeat("a", 129): false, "with blank": false, "with,comma": false, "eight-ключ": false, "": false,
		"12345678\n": false, "\x7f12345678": false,
	} {
		if err := actionpulse.CheckDeployKey(key); (err == nil) != allowed {
			t.Errorf("%q: %v", key, err)
		}
	}
	s := play(t, says(201, something))
	c := newClients(t, s.URL)
	_, err := c.deploy.Create(t.Context(), marker, actionpulse.WithKey("1234567"))
	if e := asError(t, err); e.Code != api.CodeInvalidRequest || len(s.requests()) != 0 {
		t.Errorf("%v, %d requests", err, len(s.requests()))
	}
}

// TestMintedKeys: each call has its own key, which its result and its error
// tell.
func TestMintedKeys(t *testing.T) {
	t.Parallel()
	s := play(t, says(200, something), says(200, something), refuses(402, "insufficient_credits", ""))
	c := newClients(t, s.URL)
	first, err := c.Customers.Charge(t.Context(), "ada", actionpulse.Move{})
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.Customers.Charge(t.Context(), "ada", actionpulse.Move{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Customers.Charge(t.Context(), "ada", actionpulse.Move{})
	keys := []string{first.IdempotencyKey, second.IdempotencyKey, asError(t, err).IdempotencyKey}
	for i, key := range keys {
		if id, err := uuid.Parse(key); err != nil || id.Version() != 7 || s.requests()[i].header.Get("Idempotency-Key") != key {
			t.Errorf("key %d is %q, sent as %q", i, key, s.requests()[i].header.Get("Idempotency-Key"))
		}
	}
	if keys[0] == keys[1] || keys[1] == keys[2] {
		t.Errorf("calls share a key: %v", keys)
	}
}

func TestKeysFromJobs(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		actionpulse.KeyFromRiver(42, "email"):                                      "river:42:email",
		actionpulse.KeyFromRiver(42, ""):                                           "river:42",
		actionpulse.KeyFromSQS("5fea7756-0ea4-451a-a703-a558b933e274", "charge"):   "sqs:5fea7756-0ea4-451a-a703-a558b933e274:charge",
		actionpulse.KeyFromAsynq("c7b1c0f2-8f2b-4cb1-a1a5-3f1c2d4e5f60", "charge"): "asynq:c7b1c0f2-8f2b-4cb1-a1a5-3f1c2d4e5f60:charge",
	} {
		if got != want || actionpulse.CheckKey(got) != nil {
			t.Errorf("%q, want %q: %v", got, want, actionpulse.CheckKey(got))
		}
	}
	for _, key := range []string{
		actionpulse.KeyFromSQS("", "charge"), actionpulse.KeyFromAsynq("", "charge"),
		actionpulse.KeyFromRiver(1, strings.Repeat("a", actionpulse.MaxKey)), actionpulse.KeyFromRiver(1, hex.EncodeToString([]byte{0})+"\x00"),
	} {
		if actionpulse.CheckKey(key) == nil {
			t.Errorf("%q is allowed: jobs would share it, or it cannot be sent", key)
		}
	}
}
