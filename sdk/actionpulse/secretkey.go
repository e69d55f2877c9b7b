package actionpulse

import (
	"context"
	"iter"
	"net/http"

	"github.com/actionpulse/actionpulse/api"
)

// SecretKeys are the project keys or the CI/CD tokens of a project. A secret
// is shown once, by the answer that makes it.
type SecretKeys struct {
	link *link
	// path is where they are; noun is what operationIds call one.
	path, noun string
}

func newSecretKeys(l *link, path, noun string) SecretKeys {
	return SecretKeys{link: l, path: projectPath + path, noun: noun}
}

// List returns a page of a project's keys.
func (k *SecretKeys) List(ctx context.Context, projectID string, p Page) (*api.List[api.Key], error) {
	return list[api.Key](ctx, k.link, reads("list"+k.noun+"s", k.path, projectID).ask(p.query()))
}

// All yields every key from p on.
func (k *SecretKeys) All(ctx context.Context, projectID string, p Page) iter.Seq2[api.Key, error] {
	return all(p, func(p Page) (*api.List[api.Key], error) { return k.List(ctx, projectID, p) })
}

// Create makes a key.
func (k *SecretKeys) Create(ctx context.Context, projectID string, n api.NewKey) (*api.CreatedKey, error) {
	return fetch[api.CreatedKey](ctx, k.link, changes("create"+k.noun, http.MethodPost, k.path, projectID).with(n))
}

// Revoke ends a key at once.
func (k *SecretKeys) Revoke(ctx context.Context, projectID, keyID string) error {
	return perform(ctx, k.link, changes("revoke"+k.noun, http.MethodDelete, k.path+"/{key_id}", projectID, keyID))
}

// Rotate makes a key in place of another, which works on for the overlap.
func (k *SecretKeys) Rotate(ctx context.Context, projectID, keyID string, r api.Rotation) (*api.CreatedKey, error) {
	c := changes("rotate"+k.noun, http.MethodPost, k.path+"/{key_id}/rotate", projectID, keyID).with(r)
	return fetch[api.CreatedKey](ctx, k.link, c)
}

// IngestKeys are the keys that events are sent with. An ingest key that takes
// the place of another keeps the identity of events.
type IngestKeys struct{ SecretKeys }

// Create makes an ingest key. Its secret is shown once.
func (k *IngestKeys) Create(ctx context.Context, projectID string, n api.NewIngestKey) (*api.CreatedKey, error) {
	return fetch[api.CreatedKey](ctx, k.link, changes("createIngestKey", http.MethodPost, k.path, projectID).with(n))
}

// Import takes over a key that another system has made, so that its clients
// need no change.
func (k *IngestKeys) Import(ctx context.Context, projectID string, n api.ImportedKey) (*api.Key, error) {
	return fetch[api.Key](ctx, k.link, changes("importIngestKey", http.MethodPost, k.path+"/import", projectID).with(n))
}
