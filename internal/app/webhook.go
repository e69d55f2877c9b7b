package app

import (
	"context"
	"crypto/rand"
	mathrand "math/rand/v2"

	"github.com/actionpulse/actionpulse/internal/sendhook"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
	"github.com/actionpulse/actionpulse/internal/webhook"
)

// webhooks are endpoints, and the worker that sends to them.
type webhooks struct {
	service *webhook.Service
	worker  *webhook.Worker
	sender  *sendhook.Sender
}

func newWebhooks(p servicesParams) webhooks {
	store := sqlstore.New(p.DB)
	sender := sendhook.New(sendhook.Params{AllowPrivate: p.Webhooks.AllowPrivate, Agent: "ActionPulse-Webhooks"})
	worker := webhook.NewWorker(webhook.WorkerParams{
		Queue: store, Sender: sender, Clock: p.Now, Chance: mathrand.Float64, Log: p.Log,
	})
	service := webhook.NewService(webhook.Params{
		Store: store, AllowPrivate: p.Webhooks.AllowPrivate, Clock: p.Now, Random: rand.Reader, Wake: worker.Wake,
	})
	return webhooks{service: service, worker: worker, sender: sender}
}

// run sends until ctx is done and what is under way has ended. What is written
// after that is sent at the next start.
func (w webhooks) run(ctx context.Context) {
	w.worker.Run(ctx)
	w.sender.Close()
}
