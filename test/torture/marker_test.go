package torture_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"

	"github.com/actionpulse/actionpulse/retry"
)

// deployment is one deploy: a key, and what its body says.
type deployment struct {
	key, version string
	// id is the marker's, once one was acknowledged.
	id string
	// made counts answers that a marker was made.
	made int
}

// deployments are all deploys of a run. Several deployers share their keys, as
// the jobs of one build do.
type deployments struct {
	mu   sync.Mutex
	seed uint64
	all  []*deployment
	// acks, repeats and conflicts count answers.
	acks, repeats, conflicts int
}

// pick returns one of the latest deploys or a new one, and whether it is
// acknowledged already.
func (d *deployments) pick(r *rand.Rand) (deploy *deployment, acknowledged bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := len(d.all) - r.IntN(4)
	if n < 0 || n >= len(d.all) {
		n = len(d.all)
		d.all = append(d.all, &deployment{key: fmt.Sprintf("deploy-%d-%d", d.seed, n), version: fmt.Sprintf("v%d", n)})
	}
	return d.all[n], d.all[n].id != ""
}

// markerAnswer is an answer to a deploy.
type markerAnswer struct {
	ID       string `json:"id"`
	Version  string `json:"version"`
	status   int
	replayed bool
}

// acknowledge holds an answer against those before: a key has one marker, which
// was made once.
func (d *deployments) acknowledge(deploy *deployment, a markerAnswer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.acks++
	switch a.status {
	case http.StatusCreated:
		deploy.made++
	default:
		d.repeats++
	}
	switch {
	case a.replayed != (a.status == http.StatusOK):
		return fmt.Errorf("deploy %s: answered %d, replayed %t", deploy.key, a.status, a.replayed)
	case a.ID == "" || a.Version != deploy.version:
		return fmt.Errorf("deploy %s of %s: answered %+v", deploy.key, deploy.version, a)
	case deploy.id != "" && deploy.id != a.ID:
		return fmt.Errorf("deploy %s: made the markers %s and %s", deploy.key, deploy.id, a.ID)
	case deploy.made > 1:
		return fmt.Errorf("deploy %s: made its marker %d times", deploy.key, deploy.made)
	}
	deploy.id = a.ID
	return nil
}

// deployer sends deploys.
type deployer struct {
	deployments *deployments
	client      *client
	url, secret string
	rand        *rand.Rand
}

func (x *torture) newDeployer(c *client, number uint64) *deployer {
	return &deployer{
		deployments: x.deployments, client: c, rand: newRand(x.seed, 1<<33+number), secret: x.creds.CIToken,
		url: c.url + x.markersPath() + "/deploy",
	}
}

func (x *torture) markersPath() string {
	return "/api/v1/projects/" + x.creds.ProjectID + "/release-markers"
}

// work is a worker of a fleet.
func (d *deployer) work(ctx context.Context, f *fleet) {
	for {
		deploy, acknowledged := d.deployments.pick(d.rand)
		var err error
		if acknowledged && d.rand.IntN(5) == 0 {
			err = d.conflict(ctx, deploy)
		} else {
			err = d.deploy(ctx, deploy)
		}
		if err != nil && ctx.Err() == nil {
			f.fail(err)
			return
		}
		if !f.rest(ctx, restFor(d.rand)) {
			return
		}
	}
}

// deploy sends a deploy until it is acknowledged.
func (d *deployer) deploy(ctx context.Context, deploy *deployment) error {
	answer, err := d.send(ctx, deploy.key, deploy.version)
	if err != nil {
		return fmt.Errorf("deploy %s: %w", deploy.key, err)
	}
	return d.deployments.acknowledge(deploy, answer)
}

// conflict sends another body with a key that is taken.
func (d *deployer) conflict(ctx context.Context, deploy *deployment) error {
	answer, err := d.send(ctx, deploy.key, deploy.version+" another")
	e, ok := errors.AsType[*retry.Error](err)
	if !ok || e.Outcome.Status != http.StatusConflict || e.Outcome.Code != "validation_failed" {
		return fmt.Errorf("deploy %s with another body: %+v, %w", deploy.key, answer, err)
	}
	d.deployments.mu.Lock()
	defer d.deployments.mu.Unlock()
	d.deployments.conflicts++
	return nil
}

func (d *deployer) send(ctx context.Context, key, version string) (markerAnswer, error) {
	body := fmt.Sprintf(`{"version":%q,"ts":"2026-05-01T10:00:00Z","environment":"torture"}`, version)
	return retry.Do(ctx, d.client.policy, func(ctx context.Context) (markerAnswer, retry.Outcome) {
		o := retry.Outcome{Kind: retry.Keyed}
		answer, err := d.attempt(ctx, key, body, &o)
		o.Err = err
		return answer, o
	})
}

func (d *deployer) attempt(ctx context.Context, key, body string, o *retry.Outcome) (answer markerAnswer, err error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url, strings.NewReader(body))
	if err != nil {
		return answer, err
	}
	request.Header.Set("Authorization", "Bearer "+d.secret)
	request.Header.Set("Idempotency-Key", key)
	response, err := d.client.http.Do(request)
	if err != nil {
		return answer, err
	}
	content, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return answer, err
	}
	o.Status, o.RetryAfter, o.ShouldRetry = response.StatusCode, response.Header.Get("Retry-After"), response.Header.Get("X-Should-Retry")
	answer.status, answer.replayed = response.StatusCode, response.Header.Get("Idempotency-Replayed") == "true"
	var envelope struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	if o.Succeeded() {
		return answer, json.Unmarshal(content, &answer)
	}
	if json.Unmarshal(content, &envelope) == nil {
		o.Code = envelope.Error.Code
	}
	return answer, nil
}

// completeMarkers sends every deploy once more, which must change nothing where
// it was acknowledged, and compares the markers that there are with those that
// were acknowledged: one for each key.
func (x *torture) completeMarkers() {
	x.Helper()
	before := x.storedMarkers()
	x.deployments.check(x, before)
	d := x.newDeployer(x.direct, 1000)
	for _, deploy := range x.deployments.all {
		known := deploy.id != "" || len(before[deploy.version]) > 0
		made := deploy.made
		if err := d.deploy(x.Context(), deploy); err != nil {
			x.Fatal(err)
		}
		if known && deploy.made != made {
			x.Fatalf("deploy %s was made again", deploy.key)
		}
	}
	x.deployments.check(x, x.storedMarkers())
	x.Logf("%d deploys: %d acknowledged answers, %d repeats, %d conflicts",
		len(x.deployments.all), x.deployments.acks, x.deployments.repeats, x.deployments.conflicts)
}

// check compares the stored markers with the acknowledged ones.
func (d *deployments) check(x *torture, stored map[string][]string) {
	x.Helper()
	stored = maps.Clone(stored)
	for _, deploy := range d.all {
		ids := stored[deploy.version]
		delete(stored, deploy.version)
		if len(ids) > 1 || deploy.id != "" && (len(ids) != 1 || ids[0] != deploy.id) {
			x.Errorf("deploy %s: acknowledged the marker %q, stored are %q", deploy.key, deploy.id, ids)
		}
	}
	for version, ids := range stored {
		x.Errorf("markers that nobody asked for: %s, %q", version, ids)
	}
	if len(d.all) > 0 && d.repeats == 0 {
		x.Error("no deploy was ever repeated")
	}
}

// storedMarkers returns the ids of all markers by version.
func (x *torture) storedMarkers() map[string][]string {
	x.Helper()
	stored := map[string][]string{}
	for cursor := ""; ; {
		var page struct {
			Items      []markerAnswer `json:"items"`
			NextCursor *string        `json:"next_cursor"`
		}
		x.get(x.markersPath()+"?limit=200"+cursor, &page)
		for _, m := range page.Items {
			stored[m.Version] = append(stored[m.Version], m.ID)
		}
		if page.NextCursor == nil {
			return stored
		}
		cursor = "&cursor=" + *page.NextCursor
	}
}

// get reads from the running server with the access token.
func (x *torture) get(path string, out any) {
	x.Helper()
	x.ask(x.creds.AccessToken, path, out)
}

// ask reads from the running server.
func (x *torture) ask(secret, path string, out any) {
	x.Helper()
	request, err := http.NewRequestWithContext(x.Context(), http.MethodGet, "http://"+x.address+path, http.NoBody)
	if err != nil {
		x.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+secret)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		x.Fatal(err)
	}
	content, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		x.Fatal(err)
	}
	if err := json.Unmarshal(content, out); err != nil || response.StatusCode != http.StatusOK {
		x.Fatalf("%s: %d %s: %v", path, response.StatusCode, content, err)
	}
}
