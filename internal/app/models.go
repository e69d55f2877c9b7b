package app

import (
	"crypto/rand"
	"time"

	"github.com/actionpulse/actionpulse/internal/callhttp"
	"github.com/actionpulse/actionpulse/internal/model"
	"github.com/actionpulse/actionpulse/internal/model/echo"
	"github.com/actionpulse/actionpulse/internal/openai"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
)

// newModels returns the providers of models, and all that steps call.
func newModels(p servicesParams) (*model.Service, callees) {
	client := callhttp.New(callhttp.Params{AllowPrivate: p.Flows.AllowPrivate, Agent: "ActionPulse-Flows"})
	service := model.NewService(model.Params{
		Store: sqlstore.New(p.DB), Cipher: p.Cipher, AllowPrivate: p.Flows.AllowPrivate,
		Open: openai.New(openai.Params{HTTP: client, Now: time.Now}).Open, Local: echo.New(time.After),
		Clock: time.Now, Random: rand.Reader,
	})
	return service, callees{http: client, models: service}
}
