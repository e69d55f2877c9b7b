package actionpulse

import (
	"context"
	"iter"
	"net/http"

	"github.com/actionpulse/actionpulse/api"
)

// ModelProviders are where the flows of a project send chats to.
type ModelProviders struct{ link *link }

const modelProviderPath = projectPath + "/model-providers/{provider}"

// List returns a page of a project's providers.
func (m *ModelProviders) List(ctx context.Context, projectID string, p Page) (*api.List[api.ModelProvider], error) {
	return list[api.ModelProvider](ctx, m.link, reads("listModelProviders", projectPath+"/model-providers", projectID).ask(p.query()))
}

// All yields every provider from p on.
func (m *ModelProviders) All(ctx context.Context, projectID string, p Page) iter.Seq2[api.ModelProvider, error] {
	return all(p, func(p Page) (*api.List[api.ModelProvider], error) { return m.List(ctx, projectID, p) })
}

// Get returns a provider; not_found if there is none.
func (m *ModelProviders) Get(ctx context.Context, projectID, name string) (*api.ModelProvider, error) {
	return fetch[api.ModelProvider](ctx, m.link, reads("getModelProvider", modelProviderPath, projectID, name))
}

// Put makes a provider or replaces it.
func (m *ModelProviders) Put(ctx context.Context, projectID, name string, content api.ModelProviderContent) (*api.ModelProvider, error) {
	c := changes("putModelProvider", http.MethodPut, modelProviderPath, projectID, name).with(content)
	return fetch[api.ModelProvider](ctx, m.link, c)
}

// Delete takes a provider away.
func (m *ModelProviders) Delete(ctx context.Context, projectID, name string) error {
	return perform(ctx, m.link, changes("deleteModelProvider", http.MethodDelete, modelProviderPath, projectID, name))
}
