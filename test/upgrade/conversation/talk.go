package conversation

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
)

// talk makes requests and remembers them.
type talk struct {
	client *Client
	random *rand.Rand
	now    time.Time
	said   []Exchange
}

// Talk says everything once and returns what was said. now is about the
// server's time; it decides which events are clamped.
func Talk(ctx context.Context, c *Client, now time.Time, seed uint64) ([]Exchange, error) {
	t := &talk{client: c, random: rand.New(rand.NewPCG(seed, seed)), now: now.UTC()}
	for _, part := range []func(context.Context) error{t.events, t.persons, t.replays, t.markers, t.flows, t.credits, t.executions, t.webhooks} {
		if err := part(ctx); err != nil {
			return t.said, err
		}
	}
	return t.said, nil
}

// say sends a request, demands a status and remembers it.
func (t *talk) say(ctx context.Context, status int, e Exchange) (Exchange, error) {
	said, _, err := t.client.Send(ctx, e)
	if err != nil {
		return said, err
	}
	if said.Status != status {
		return said, fmt.Errorf("%w: %s: %d instead of %d: %s", errStatus, e, said.Status, status, said.Answer)
	}
	t.said = append(t.said, said)
	return said, nil
}

// all says several things, each with the status that its answer must have.
func (t *talk) all(ctx context.Context, list ...Exchange) error {
	for _, e := range list {
		if _, err := t.say(ctx, e.Status, e); err != nil {
			return err
		}
	}
	return nil
}

func (t *talk) id() string {
	var b [16]byte
	for i := range b {
		b[i] = byte(t.random.Uint32())
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return uuid.UUID(b).String()
}

func (t *talk) at(d time.Duration) string { return t.now.Add(d).Format("2006-01-02T15:04:05.000Z") }

func track(as As, repeat Repeat, rest string, items ...string) Exchange {
	return Exchange{
		As: as, Method: http.MethodPost, Path: "/v1/track", Status: http.StatusAccepted, Repeat: repeat,
		Body: fmt.Sprintf(`{%s"events":[%s]}`, rest, strings.Join(items, ",")),
	}
}

func item(id, rest string) string {
	return fmt.Sprintf(`{"event_id":%q,"event":"purchase","user_id":"ada"%s}`, id, rest)
}

// events are tracked in every way: forms of ids, repeats, the same id under
// another kind of key, times outside of what is believed, and without an id.
func (t *talk) events(ctx context.Context) error {
	a, b, c := t.id(), t.id(), t.id()
	return t.all(ctx,
		track(AsServer, Duplicates, "", item(a, `,"properties":{"price":12.5,"plan":"pro"}`), item(strings.ToUpper(b), ""), item(a, ""), `{"event":" "}`),
		track(AsServer, Duplicates, "", item("urn:uuid:"+a, ""), item("{"+b+"}", ""), item(strings.ReplaceAll(c, "-", ""), "")),
		track(AsBrowser, Duplicates, "", item(a, `,"anon_id":"visitor","session_id":"s-1","context":{"page":"/"}`)),
		track(AsLegacy, Duplicates, "", item(a, ""), item("not-an-id", "")),
		track(AsServer, Duplicates, "", item(t.id(), fmt.Sprintf(`,"ts":%q`, t.at(-90*24*time.Hour))), item(t.id(), fmt.Sprintf(`,"ts":%q`, t.at(time.Hour)))),
		track(AsServer, Duplicates, `"historical":true,`, item(t.id(), `,"ts":"2020-02-29T12:00:00Z"`)),
		track(AsServer, Duplicates, fmt.Sprintf(`"sent_at":%q,`, t.at(-time.Hour)), item(t.id(), fmt.Sprintf(`,"ts":%q`, t.at(-61*time.Minute)))),
		track(AsServer, Never, "", `{"event":"without_id","user_id":"ada"}`),
	)
}

// Late are events that are sent last, to be waiting when a server is killed.
func (c *Client) Late(ctx context.Context, seed uint64, n int) ([]Exchange, error) {
	t := &talk{client: c, random: rand.New(rand.NewPCG(seed, seed+1))}
	for range n {
		if err := t.all(ctx, track(AsServer, Duplicates, "", item(t.id(), `,"properties":{"late":true}`), item(t.id(), ""))); err != nil {
			return t.said, err
		}
	}
	return t.said, nil
}

// persons are linked: identify adds an event each time, alias none.
func (t *talk) persons(ctx context.Context) error {
	post := func(as As, path, body string, repeat Repeat) Exchange {
		return Exchange{As: as, Method: http.MethodPost, Path: path, Body: body, Status: http.StatusAccepted, Repeat: repeat}
	}
	return t.all(ctx,
		post(AsBrowser, "/v1/identify", `{"anon_id":"visitor","user_id":"ada","traits":{"plan":"pro","age":36}}`, Never),
		post(AsServer, "/v1/identify", `{"anon_id":"visitor","user_id":"bob","traits":{"plan":"free"}}`, Never),
		post(AsServer, "/v1/alias", `{"anon_id":"tablet","user_id":"ada"}`, Same),
	)
}

// replays are recorded in chunks, of which one is missing.
func (t *talk) replays(ctx context.Context) error {
	chunk := func(n int) Exchange {
		return Exchange{As: AsBrowser, Method: http.MethodPost, Path: "/v1/replay", Status: http.StatusAccepted, Repeat: Chunk, Body: fmt.Sprintf(
			`{"session_id":"s-1","chunk":%d,"user_id":"ada","events":[{"type":4,"timestamp":%d,"data":{"href":"https://example.com/"}}]}`, n, t.now.UnixMilli())}
	}
	return t.all(ctx, chunk(0), chunk(2))
}

// markers are made by a pipeline, refused under a taken key, and made by hand.
func (t *talk) markers(ctx context.Context) error {
	deploy := func(key, body string, status int, repeat Repeat) Exchange {
		return Exchange{As: AsCI, Method: http.MethodPost, Path: "/api/v1/projects/{id}/release-markers/deploy", Key: key, Body: body, Status: status, Repeat: repeat}
	}
	return t.all(ctx,
		deploy("deploy-2026-1", `{"version":"1.0.0","ts":"2026-05-01T10:00:00+02:00","commit":"abc","metadata":{"n":1.0}}`, http.StatusCreated, Replayed),
		deploy("deploy-2026-2", `{"version":"1.1.0"}`, http.StatusCreated, Replayed),
		deploy("deploy-2026-1", `{"version":"9.9.9"}`, http.StatusConflict, Refused),
		deploy("short", `{"version":"1"}`, http.StatusUnprocessableEntity, Refused),
		Exchange{As: AsOwner, Method: http.MethodPost, Path: "/api/v1/projects/{id}/release-markers", Body: `{"version":"by hand"}`, Status: http.StatusCreated},
	)
}

// flows are published in two versions.
func (t *talk) flows(ctx context.Context) error {
	put := func(slug, body string) Exchange {
		return Exchange{As: AsProject, Method: http.MethodPut, Path: "/v1/flows/" + slug, Body: body, Status: http.StatusCreated, Repeat: Same}
	}
	const say = `{"steps":[{"id":"say","type":"model","provider":"echo","model":"echo-1","messages":[{"role":"user","content":"${input.text}"}]}],"output":"${steps.say.text}"`
	first, second := put("greet", say+`}`), put("greet", say+`,"price":{"per_run":"2"}}`)
	first.Repeat = Never // it would be published again as the newest
	return t.all(ctx, first, second,
		put("strict", `{"input":{"type":"object","required":["n"]},"steps":[]}`),
		put("plain", `{"steps":[{"id":"s","type":"transform","value":"${input.text}"}],"output":"${steps.s.output}"}`))
}

// credits are moved in every way.
func (t *talk) credits(ctx context.Context) error {
	move := func(kind, key, body string, status int, repeat Repeat) Exchange {
		return Exchange{As: AsProject, Method: http.MethodPost, Path: "/v1/customers/ada%20l/" + kind, Key: key, Body: body, Status: status, Repeat: repeat}
	}
	err := t.all(ctx,
		move("topup", "order-1", `{"credit_type":"main","amount":"100.50","reason":"first"}`, http.StatusOK, Bytes),
		move("topup", "order-2", `{"credit_type":"main","amount":"20","expires_at":"2099-01-01T00:00:00Z","priority":10}`, http.StatusOK, Bytes),
		move("charge", "order-3", `{"amount":0.25,"credit_type":"main"}`, http.StatusOK, Bytes),
		move("adjust", "order-4", `{"credit_type":"main","amount":"-1.000001"}`, http.StatusOK, Bytes),
		move("charge", "order-5", `{"credit_type":"main","amount":"100000"}`, http.StatusPaymentRequired, Refused),
		move("charge", "order-1", `{"credit_type":"main","amount":"1"}`, http.StatusConflict, Refused),
	)
	if err != nil {
		return err
	}
	charged, err := t.say(ctx, http.StatusOK, move("charge", "order-6", `{"credit_type":"main","amount":"3"}`, http.StatusOK, Bytes))
	if err != nil {
		return err
	}
	return t.holds(ctx, charged)
}

// holds are placed, captured and let go; the charge is reversed.
func (t *talk) holds(ctx context.Context, charged Exchange) error {
	var answer struct {
		Movement struct {
			ID string `json:"id"`
		} `json:"movement"`
	}
	if err := json.Unmarshal([]byte(charged.Answer), &answer); err != nil {
		return fmt.Errorf("read a movement: %w", err)
	}
	const holds = "/v1/customers/ada%20l/holds/"
	request := func(method, path, body string, status int, repeat Repeat) Exchange {
		return Exchange{As: AsProject, Method: method, Path: path, Body: body, Status: status, Repeat: repeat}
	}
	return t.all(ctx,
		request("POST", "/v1/movements/"+answer.Movement.ID+"/reversal", `{"amount":"1.5"}`, http.StatusCreated, Same),
		request("PUT", holds+"captured", `{"credit_type":"main","amount":"10"}`, http.StatusCreated, Never),
		request("POST", holds+"captured/capture", `{"amount":"4"}`, http.StatusOK, Same),
		request("PUT", holds+"released", `{"credit_type":"main","amount":"5"}`, http.StatusCreated, Never),
		request("POST", holds+"released/release", "", http.StatusOK, Same),
		request("PUT", holds+"open", `{"credit_type":"main","amount":"6"}`, http.StatusCreated, Same),
	)
}

// executions succeed, fail and are queued.
func (t *talk) executions(ctx context.Context) error {
	run := func(key, body string, status int, repeat Repeat) Exchange {
		return Exchange{As: AsProject, Method: http.MethodPost, Path: "/v1/operations/execute", Key: key, Body: body, Status: status, Repeat: repeat}
	}
	err := t.all(ctx,
		run("run-1", `{"flow":"greet","customer":"ada l","input":{"text":"hello"}}`, http.StatusOK, Execution),
		run("run-2", `{"flow":"strict","input":{}}`, http.StatusUnprocessableEntity, Execution),
		run("run-1", `{"flow":"greet","customer":"ada l","input":{"text":"other"}}`, http.StatusConflict, Refused),
		run("run-4", `{"flow":"nowhere","input":{}}`, http.StatusNotFound, Refused),
	)
	if err != nil {
		return err
	}
	queued, err := t.say(ctx, http.StatusAccepted, run("run-3", `{"flow":"plain","input":{"text":"later"},"execution_mode":"async"}`, 0, Execution))
	if err != nil {
		return err
	}
	return t.ended(ctx, queued)
}

// ended returns when an execution has ended: then what follows it ends, too.
func (t *talk) ended(ctx context.Context, queued Exchange) error {
	var answer struct {
		Execution struct {
			ID string `json:"id"`
		} `json:"execution"`
	}
	if err := json.Unmarshal([]byte(queued.Answer), &answer); err != nil {
		return fmt.Errorf("read an execution: %w", err)
	}
	said, _, err := t.client.Send(ctx, Exchange{As: AsProject, Method: http.MethodGet, Path: "/v1/executions/" + answer.Execution.ID + "/events"})
	if err == nil && said.Status != http.StatusOK {
		err = fmt.Errorf("%w: %s", errStatus, said.Answer)
	}
	return err
}

// webhooks get an endpoint that is never reached.
func (t *talk) webhooks(ctx context.Context) error {
	return t.all(ctx, Exchange{
		As: AsOwner, Method: http.MethodPost, Path: "/api/v1/projects/{id}/webhooks", Status: http.StatusCreated,
		Body: `{"url":"https://hooks.example.com/in","events":["movement.created"]}`,
	})
}

// Look reads what there is: of events, links, markers, credits, flows, runs and
// webhooks. The answers can be compared with those to the same questions later.
func Look(ctx context.Context, c *Client, now time.Time) ([]Exchange, error) {
	t := &talk{client: c, now: now.UTC()}
	query := func(body string) Exchange {
		return Exchange{
			As: AsOwner, Method: http.MethodPost, Path: "/api/v1/projects/{id}/query", Status: http.StatusOK, Repeat: Read,
			Body: fmt.Sprintf(body, "2019-01-01T00:00:00Z", t.at(24*time.Hour)),
		}
	}
	list := []Exchange{
		query(`{"type":"trend","interval":"year","measure":"count","event":["purchase","without_id","identify"],"from":%q,"to":%q}`),
		query(`{"type":"trend","interval":"year","measure":"persons","from":%q,"to":%q}`),
		query(`{"type":"events","limit":200,"from":%q,"to":%q}`),
		query(`{"type":"breakdown","by":"traits.plan","measure":"count","limit":20,"from":%q,"to":%q}`),
	}
	for _, path := range []string{"/v1/customers/ada%20l", "/v1/customers/ada%20l/grants", "/v1/customers/ada%20l/holds", "/v1/movements", "/v1/flows", "/v1/executions", "/v1/operations"} {
		list = append(list, Exchange{As: AsProject, Method: http.MethodGet, Path: path, Status: http.StatusOK, Repeat: Read})
	}
	for _, path := range []string{"/api/v1/projects/{id}/release-markers", "/api/v1/projects/{id}/webhooks", "/api/v1/projects"} {
		list = append(list, Exchange{As: AsOwner, Method: http.MethodGet, Path: path, Status: http.StatusOK, Repeat: Read})
	}
	err := t.all(ctx, list...)
	return t.said, err
}
