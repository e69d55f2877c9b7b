package httpapi

import (
	"cmp"
	"net/http"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/model"
)

// modelLimit is the most that the body of a model provider may hold.
const modelLimit = 16 << 10

// modelRoutes are those of model providers.
func modelRoutes() []route {
	viewer := access{kinds: []credential.Kind{credential.Access}, role: roleViewer}
	admin := access{kinds: []credential.Kind{credential.Access}, role: roleAdmin}
	const all = "/api/v1/projects/{id}/model-providers"
	const one = all + "/{provider}"
	return []route{
		{"GET", all, viewer, body{}, reads, listModelProvidersOperation, (*service).listModelProviders},
		{"GET", one, viewer, body{}, reads, getModelProviderOperation, (*service).getModelProvider},
		{"PUT", one, admin, jsonBody(modelLimit), mutates, putModelProviderOperation, (*service).putModelProvider},
		{"DELETE", one, admin, body{}, mutates, deleteModelProviderOperation, (*service).deleteModelProvider},
	}
}

// modelParams are the parameters of the methods of one provider.
func modelParams() []param {
	return []param{idParam("id", "The project."), pathText("provider", "The provider's name: 1 to 64 letters a to z, digits, _ and -.")}
}

var listModelProvidersOperation = operation{
	id: "listModelProviders", tag: tagModels, summary: "List model providers, by name",
	description: "The provider echo, which every project has, is among them.",
	params:      pageParams(idParam("id", "The project.")),
	replies:     replyOK("A page of providers.", api.List[api.ModelProvider]{}),
}

func (s *service) listModelProviders(x *exchange) (answer, error) {
	part, err := x.page()
	if err != nil {
		return answer{}, err
	}
	if part.after != "" && !model.ValidName(part.after) {
		return answer{}, badCursor()
	}
	p, err := s.project(x)
	if err != nil {
		return answer{}, err
	}
	all, err := s.Models.List(x.r.Context(), p.ID, part.after, part.limit+1)
	if err != nil {
		return answer{}, err
	}
	return pageAnswer(all, part.limit, modelProviderOf, func(r *model.Record) string { return r.Name })
}

var getModelProviderOperation = operation{
	id: "getModelProvider", tag: tagModels, summary: "Get a model provider",
	params:  modelParams(),
	replies: replyOK("The provider, without its key.", api.ModelProvider{}),
}

func (s *service) getModelProvider(x *exchange) (answer, error) {
	at, err := s.modelPlace(x)
	if err != nil {
		return answer{}, err
	}
	r, err := s.Models.Get(x.r.Context(), at.ProjectID, at.Name)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, modelProviderOf(&r))
}

var putModelProviderOperation = operation{
	id: "putModelProvider", tag: tagModels, summary: "Make or replace a model provider",
	description: "Any server that speaks OpenAI's chat completions. A repeat changes nothing; calls that have begun end as they are.",
	params:      modelParams(),
	request:     api.ModelProviderContent{},
	replies: append(replyCreated("The provider was made.", api.ModelProvider{}),
		replyOK("The provider was there, and is now as the body says.", api.ModelProvider{})...),
	errors: codes(api.CodeConflict),
}

func (s *service) putModelProvider(x *exchange) (answer, error) {
	in, err := decode[api.ModelProviderContent](x)
	if err != nil {
		return answer{}, err
	}
	at, err := s.modelPlace(x)
	if err != nil {
		return answer{}, err
	}
	r, created, err := s.Models.Put(x.r.Context(), at, model.Content{
		APIKey: (*model.Secret)(in.APIKey),
		Settings: model.Settings{
			BaseURL: in.BaseURL, Timeout: cmp.Or(time.Duration(valueOf(in.TimeoutSeconds))*time.Second, model.DefaultTimeout),
			RequestsPerMinute: valueOf(in.RequestsPerMinute), MaxConcurrent: valueOf(in.MaxConcurrent),
		},
	})
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(createdOr(created), modelProviderOf(&r))
}

var deleteModelProviderOperation = operation{
	id: "deleteModelProvider", tag: tagModels, summary: "Delete a model provider",
	description: "Its key goes with it. Flows that name it stay, and fail at the step that calls it.",
	params:      modelParams(),
	replies:     replyNothing("It is deleted."),
	errors:      codes(api.CodeConflict),
}

func (s *service) deleteModelProvider(x *exchange) (answer, error) {
	at, err := s.modelPlace(x)
	if err != nil {
		return answer{}, err
	}
	return changed(s.Models.Delete(x.r.Context(), at))
}

// modelPlace finds the project in the path, and names the provider there.
func (s *service) modelPlace(x *exchange) (model.Place, error) {
	p, err := s.project(x)
	return model.Place{
		Actor: s.actor(x), OrganizationID: p.OrganizationID, ProjectID: p.ID, Name: x.r.PathValue("provider"),
	}, err
}

// valueOf is an optional number; 0 if it is absent.
func valueOf(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// modelProviderOf is a provider as it is sent.
func modelProviderOf(r *model.Record) api.ModelProvider {
	out := api.ModelProvider{
		Name: r.Name, BuiltIn: r.Name == model.Local, RequestsPerMinute: r.RequestsPerMinute, MaxConcurrent: r.MaxConcurrent,
		BaseURL: api.OptionalText(r.BaseURL), CreatedAt: api.OptionalTime(r.CreatedAt), UpdatedAt: api.OptionalTime(r.UpdatedAt),
	}
	if r.Timeout > 0 {
		out.TimeoutSeconds = new(int64(r.Timeout / time.Second))
	}
	if len(r.Sealed.Bytes) > 0 {
		out.APIKey = &api.ModelAPIKey{Prefix: r.Sealed.Prefix, LastFour: r.Sealed.LastFour}
	}
	return out
}
