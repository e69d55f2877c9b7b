package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

func verify(secret string, h http.Header, body []byte, now time.Time) bool {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	at, bad := strconv.ParseInt(h.Get("webhook-timestamp"), 10, 64)
	if err != nil || bad != nil || now.Sub(time.Unix(at, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(fmt.Appendf(nil, "%s.%d.%s", h.Get("webhook-id"), at, body))
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for signature := range strings.FieldsSeq(h.Get("webhook-signature")) {
		if hmac.Equal([]byte(signature), []byte(want)) {
			return true
		}
	}
	return false
}

// TestTheGuideVerifies: the function above is the one that the guide shows,
// and it takes what is signed here and nothing else.
func TestTheGuideVerifies(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/guides/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("guide_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(source), "\nfunc verify(")
	code, _, _ = strings.Cut(code, "\n}\n")
	if !strings.Contains(string(guide), "func verify("+code+"\n}\n") {
		t.Error("the guide shows another function")
	}
	now := time.Unix(1_800_000_000, 0)
	first, other := "whsec_"+strings.Repeat("A", 44), "whsec_"+strings.Repeat("B", 44)
	c := Claimed{Message: Message{ID: "msg_1", Body: []byte("{}")}, Secrets: Secrets{Current: first, Old: other, OldUntil: now.Add(1)}}
	r, err := c.request(now)
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	h.Set("webhook-id", r.ID)
	h.Set("webhook-timestamp", r.Timestamp)
	h.Set("webhook-signature", r.Signature)
	for name, got := range map[string]bool{
		"": verify(first, h, r.Body, now), "by the old secret": verify(other, h, r.Body, now), "later": verify(first, h, r.Body, now.Add(5*time.Minute)),
	} {
		if !got {
			t.Errorf("a message %s is refused", name)
		}
	}
	for name, got := range map[string]bool{
		"another body": verify(first, h, []byte("[]"), now), "another secret": verify("whsec_"+strings.Repeat("C", 44), h, r.Body, now),
		"too late": verify(first, h, r.Body, now.Add(5*time.Minute+1)), "no headers": verify(first, http.Header{}, r.Body, now),
	} {
		if got {
			t.Errorf("%s is taken", name)
		}
	}
}
