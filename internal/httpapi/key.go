package httpapi

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// keyFamily is a resource of credentials: ingest keys, project keys or CI/CD
// tokens. A key is found only in its own.
type keyFamily struct {
	// path is the last part of the path.
	path string
	// one and many are what they are called, id is the same in an
	// operationId.
	one, many string
	id        string
	kinds     []credential.Kind
	// create reads the body that makes one.
	create func(x *exchange) (credential.CreateParams, error)
	// request is the type of that body.
	request any
}

var (
	ingestKeys = keyFamily{
		path: "ingest-keys", one: "an ingest key", many: "ingest keys", id: "IngestKey",
		kinds:  []credential.Kind{credential.Browser, credential.Server, credential.Legacy},
		create: newIngestKey, request: api.NewIngestKey{},
	}
	projectKeys = keyFamily{
		path: "project-keys", one: "a project key", many: "project keys", id: "ProjectKey",
		kinds:  []credential.Kind{credential.Project},
		create: newKey(credential.Project), request: api.NewKey{},
	}
	ciTokens = keyFamily{
		path: "ci-tokens", one: "a CI/CD token", many: "CI/CD tokens", id: "CIToken",
		kinds:  []credential.Kind{credential.CI},
		create: newKey(credential.CI), request: api.NewKey{},
	}
)

func newIngestKey(x *exchange) (credential.CreateParams, error) {
	in, err := decode[api.NewIngestKey](x)
	return credential.CreateParams{
		Kind: credential.Kind(in.Kind), Name: in.Name, Origins: in.Origins, Rate: in.Rate, Burst: in.Burst,
	}, err
}

func newKey(kind credential.Kind) func(*exchange) (credential.CreateParams, error) {
	return func(x *exchange) (credential.CreateParams, error) {
		in, err := decode[api.NewKey](x)
		return credential.CreateParams{Kind: kind, Name: in.Name}, err
	}
}

// keyParams are the parameters of the methods of one key.
func keyParams(f keyFamily) []param {
	return []param{idParam("id", "The project."), idParam("key_id", "The id of "+f.one+" of the project.")}
}

// routes are the methods of the family.
func (f keyFamily) routes(viewer, admin access) []route {
	path := "/api/v1/projects/{id}/" + f.path
	return []route{
		{"GET", path, viewer, body{}, reads, f.listOperation(), f.list},
		{"POST", path, admin, jsonBody(accountLimit), mutates, f.createOperation(), f.make},
		{"POST", path + "/{key_id}/rotate", admin, jsonBody(accountLimit), mutates, f.rotateOperation(), f.rotate},
		{"DELETE", path + "/{key_id}", admin, body{}, mutates, f.revokeOperation(), f.revoke},
	}
}

func (f keyFamily) listOperation() operation {
	return operation{
		id: "list" + f.id + "s", tag: tagKeys, summary: "List " + f.many,
		description: "Those that have ended are among them. The list never holds a secret.",
		params:      pageParams(idParam("id", "The project.")),
		replies:     replyOK("A page of "+f.many+".", api.List[api.Key]{}),
	}
}

func (f keyFamily) list(s *service, x *exchange) (answer, error) {
	part, err := x.page()
	if err != nil {
		return answer{}, err
	}
	after, err := part.number()
	if err != nil {
		return answer{}, err
	}
	p, err := s.project(x)
	if err != nil {
		return answer{}, err
	}
	all, err := s.Keys.ListProject(x.r.Context(), credential.ListQuery{
		OrganizationID: p.OrganizationID, ProjectID: p.ID, Kinds: f.kinds, After: after, Limit: part.limit + 1,
	})
	if err != nil {
		return answer{}, err
	}
	return pageAnswer(all, part.limit, keyRecordOf, func(r *credential.Record) string {
		return strconv.FormatInt(r.Number, 10)
	})
}

func (f keyFamily) createOperation() operation {
	return operation{
		id: "create" + f.id, tag: tagKeys, summary: "Make " + f.one,
		description: "A repeat makes a second one.",
		params:      []param{idParam("id", "The project.")},
		request:     f.request,
		replies:     replyCreated("The secret, which is shown once.", api.CreatedKey{}),
	}
}

func (f keyFamily) make(s *service, x *exchange) (answer, error) {
	params, err := f.create(x)
	if err != nil {
		return answer{}, err
	}
	if err := s.into(x, &params); err != nil {
		return answer{}, err
	}
	r, secret, err := s.Keys.Create(x.r.Context(), params)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusCreated, api.CreatedKey{Key: keyRecordOf(&r), Token: secret})
}

// into says which project a key is made for, and by whom.
func (s *service) into(x *exchange, params *credential.CreateParams) error {
	p, err := s.project(x)
	params.OrganizationID, params.ProjectID, params.Actor = p.OrganizationID, p.ID, s.actor(x)
	return err
}

func (f keyFamily) rotateOperation() operation {
	return operation{
		id: "rotate" + f.id, tag: tagKeys, summary: "Replace " + f.one,
		description: "Makes one like it with another secret; the old one works until the overlap is over. It ends at once with " +
			"overlap_seconds 0. A 503 with details.applied true has replaced it, but the new secret is lost: rotate again, the new one.",
		params:  keyParams(f),
		request: api.Rotation{},
		replies: replyCreated("The new one with its secret, which is shown once.", api.CreatedKey{}),
		errors:  codes(api.CodeConflict),
	}
}

func (f keyFamily) rotate(s *service, x *exchange) (answer, error) {
	in, err := decode[api.Rotation](x)
	if err != nil {
		return answer{}, err
	}
	overlap := credential.DefaultOverlap
	if in.OverlapSeconds != nil {
		overlap = time.Duration(*in.OverlapSeconds) * time.Second
	}
	ref, err := f.ref(s, x)
	if err != nil {
		return answer{}, err
	}
	r, secret, err := s.Keys.Rotate(x.r.Context(), credential.RotateParams{Actor: s.actor(x), Ref: ref, Overlap: overlap})
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusCreated, api.CreatedKey{Key: keyRecordOf(&r), Token: secret})
}

func (f keyFamily) revokeOperation() operation {
	return operation{
		id: "revoke" + f.id, tag: tagKeys, summary: "Revoke " + f.one,
		description: "It is refused from now on. Revoking again changes nothing. A 503 with details.applied true has revoked it, " +
			"but another server on the same database may take it for a second more.",
		params:  keyParams(f),
		replies: replyNothing("It has ended."),
	}
}

func (f keyFamily) revoke(s *service, x *exchange) (answer, error) {
	ref, err := f.ref(s, x)
	if err != nil {
		return answer{}, err
	}
	return changed(s.Keys.Revoke(x.r.Context(), s.actor(x), ref))
}

// ref names the key in the path.
func (f keyFamily) ref(s *service, x *exchange) (credential.Ref, error) {
	p, err := s.project(x)
	return credential.Ref{OrganizationID: p.OrganizationID, ProjectID: p.ID, Kinds: f.kinds, ID: x.r.PathValue("key_id")}, err
}

var importKeyOperation = operation{
	id: "importIngestKey", tag: tagKeys, summary: "Import an ingest key that another system has made",
	description: "Clients that are in the field go on with the key they have. It becomes a legacy key, whatever it looks like, " +
		"and its events have an identity of their own. The key must not be in use already.",
	params:  []param{idParam("id", "The project.")},
	request: api.ImportedKey{},
	replies: replyCreated("The key, without its secret.", api.Key{}),
}

func (s *service) importKey(x *exchange) (answer, error) {
	in, err := decode[api.ImportedKey](x)
	if err != nil {
		return answer{}, err
	}
	params := credential.CreateParams{Name: in.Name}
	if err := s.into(x, &params); err != nil {
		return answer{}, err
	}
	r, err := s.Keys.ImportLegacy(x.r.Context(), in.Token, params)
	if err != nil {
		return answer{}, tokenFault(err)
	}
	return jsonAnswer(http.StatusCreated, keyRecordOf(&r))
}

// tokenFault calls the member at fault what it is called in the body.
func tokenFault(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Details["field"] == "secret" {
		return f.With("field", "token")
	}
	return err
}

// keyRecordOf is a key as it is sent.
func keyRecordOf(r *credential.Record) api.Key {
	return api.Key{
		ID: r.ID, Name: r.Name, Kind: string(r.Kind), Prefix: r.Prefix, LastFour: r.LastFour,
		Origins: r.Origins, Rate: r.Rate, Burst: r.Burst,
		CreatedAt: api.TimeText(r.CreatedAt), ExpiresAt: api.OptionalTime(r.ExpiresAt), RevokedAt: api.OptionalTime(r.RevokedAt),
	}
}
