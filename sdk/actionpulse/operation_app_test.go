package actionpulse_test

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

var sessions = actionpulse.ListReplays{Page: page, Person: "u", From: noon, To: noon, MinDuration: 1500 * time.Millisecond, HasErrors: new(true)}

var accountMethods = map[string][]method{
	"login": {func(ctx context.Context, c *clients) error {
		return of(c.app.Login(ctx, api.Login{Email: "o@localhost", Password: "p"}))
	}},
	"refresh":        {func(ctx context.Context, c *clients) error { return of(c.app.Refresh(ctx, one)) }},
	"logout":         {func(ctx context.Context, c *clients) error { return c.app.Logout(ctx) }},
	"changePassword": {func(ctx context.Context, c *clients) error { return c.app.ChangePassword(ctx, api.PasswordChange{}) }},
	"acceptInvitation": {func(ctx context.Context, c *clients) error {
		return of(c.app.AcceptInvitation(ctx, api.Acceptance{Token: "t", Password: "p"}))
	}},
	"listOrganizations": {
		func(ctx context.Context, c *clients) error { return of(c.app.Organizations.List(ctx, page)) },
		func(ctx context.Context, c *clients) error { return drain(c.app.Organizations.All(ctx, page)) },
	},
	"createOrganization": {func(ctx context.Context, c *clients) error {
		return of(c.app.Organizations.Create(ctx, api.NewOrganization{Name: "o"}))
	}},
	"getOrganization": {func(ctx context.Context, c *clients) error { return of(c.app.Organizations.Get(ctx, one)) }},
	"renameOrganization": {func(ctx context.Context, c *clients) error {
		return of(c.app.Organizations.Rename(ctx, one, api.NewOrganization{Name: "o"}))
	}},
	"getUsage": {
		func(ctx context.Context, c *clients) error { return of(c.app.Organizations.Usage(ctx, one, "2026-11")) },
		func(ctx context.Context, c *clients) error { return of(c.app.Organizations.Usage(ctx, one, "")) },
	},
	"listAuditLog": {
		func(ctx context.Context, c *clients) error { return of(c.app.Organizations.AuditLog(ctx, one, page)) },
		func(ctx context.Context, c *clients) error {
			return drain(c.app.Organizations.AllAuditLog(ctx, one, page))
		},
	},
	"listMembers": {
		func(ctx context.Context, c *clients) error { return of(c.app.Members.List(ctx, one, page)) },
		func(ctx context.Context, c *clients) error { return drain(c.app.Members.All(ctx, one, page)) },
	},
	"setMemberRole": {func(ctx context.Context, c *clients) error {
		return of(c.app.Members.SetRole(ctx, one, two, "viewer"))
	}},
	"removeMember": {func(ctx context.Context, c *clients) error { return c.app.Members.Remove(ctx, one, two) }},
	"listInvitations": {
		func(ctx context.Context, c *clients) error { return of(c.app.Invitations.List(ctx, one, page)) },
		func(ctx context.Context, c *clients) error { return drain(c.app.Invitations.All(ctx, one, page)) },
	},
	"createInvitation": {func(ctx context.Context, c *clients) error {
		return of(c.app.Invitations.Create(ctx, one, api.NewInvitation{Email: "a@localhost", Role: "viewer"}))
	}},
	"revokeInvitation": {func(ctx context.Context, c *clients) error { return c.app.Invitations.Revoke(ctx, one, two) }},
	"listProjects": {
		func(ctx context.Context, c *clients) error { return of(c.app.Projects.List(ctx, page)) },
		func(ctx context.Context, c *clients) error { return drain(c.app.Projects.All(ctx, page)) },
	},
	"createProject": {func(ctx context.Context, c *clients) error {
		return of(c.app.Projects.Create(ctx, api.NewProject{Name: "p"}))
	}},
	"getProject": {func(ctx context.Context, c *clients) error { return of(c.app.Projects.Get(ctx, one)) }},
	"updateProject": {func(ctx context.Context, c *clients) error {
		return of(c.app.Projects.Update(ctx, one, api.ProjectChange{Name: new("p")}))
	}},
	"listReplays": {
		func(ctx context.Context, c *clients) error { return of(c.app.Replays.List(ctx, one, sessions)) },
		func(ctx context.Context, c *clients) error { return drain(c.app.Replays.All(ctx, one, sessions)) },
	},
	"getReplay":      {func(ctx context.Context, c *clients) error { return of(c.app.Replays.Get(ctx, one, "s/1")) }},
	"getReplayChunk": {func(ctx context.Context, c *clients) error { return of(c.app.Replays.Chunk(ctx, one, "s/1", 0)) }},
	"deleteReplay":   {func(ctx context.Context, c *clients) error { return c.app.Replays.Delete(ctx, one, "s/1") }},
	"getIngestDebug": {func(ctx context.Context, c *clients) error { return of(c.app.Projects.IngestDebug(ctx, one)) }},
}

var projectMethods = map[string][]method{
	"listIngestKeys": {
		func(ctx context.Context, c *clients) error { return of(c.app.IngestKeys.List(ctx, one, page)) },
		func(ctx context.Context, c *clients) error { return drain(c.app.IngestKeys.All(ctx, one, page)) },
	},
	"createIngestKey": {func(ctx context.Context, c *clients) error {
		return of(c.app.IngestKeys.Create(ctx, one, api.NewIngestKey{Name: "k", Kind: "browser", Origins: []string{"https://a.example"}}))
	}},
	"importIngestKey": {func(ctx context.Context, c *clients) error {
		return of(c.app.IngestKeys.Import(ctx, one, api.ImportedKey{Name: "k", Token: "t"}))
	}},
	"revokeIngestKey": {func(ctx context.Context, c *clients) error { return c.app.IngestKeys.Revoke(ctx, one, two) }},
	"rotateIngestKey": {func(ctx context.Context, c *clients) error {
		return of(c.app.IngestKeys.Rotate(ctx, one, two, api.Rotation{OverlapSeconds: new(int64(0))}))
	}},
	"listProjectKeys": {
		func(ctx context.Context, c *clients) error { return of(c.app.ProjectKeys.List(ctx, one, page)) },
		func(ctx context.Context, c *clients) error { return drain(c.app.ProjectKeys.All(ctx, one, page)) },
	},
	"createProjectKey": {func(ctx context.Context, c *clients) error {
		return of(c.app.ProjectKeys.Create(ctx, one, api.NewKey{Name: "k"}))
	}},
	"revokeProjectKey": {func(ctx context.Context, c *clients) error { return c.app.ProjectKeys.Revoke(ctx, one, two) }},
	"rotateProjectKey": {func(ctx context.Context, c *clients) error {
		return of(c.app.ProjectKeys.Rotate(ctx, one, two, api.Rotation{}))
	}},
	"listCITokens": {func(ctx context.Context, c *clients) error { return of(c.app.CITokens.List(ctx, one, page)) }},
	"createCIToken": {func(ctx context.Context, c *clients) error {
		return of(c.app.CITokens.Create(ctx, one, api.NewKey{Name: "k"}))
	}},
	"revokeCIToken": {func(ctx context.Context, c *clients) error { return c.app.CITokens.Revoke(ctx, one, two) }},
	"rotateCIToken": {func(ctx context.Context, c *clients) error {
		return of(c.app.CITokens.Rotate(ctx, one, two, api.Rotation{}))
	}},
	"listMarkers": {
		func(ctx context.Context, c *clients) error {
			return of(c.app.Markers.List(ctx, one, actionpulse.ListMarkers{Page: page, From: noon, To: noon, Environment: "production"}))
		},
		func(ctx context.Context, c *clients) error {
			return drain(c.app.Markers.All(ctx, one, actionpulse.ListMarkers{}))
		},
		func(ctx context.Context, c *clients) error { return of(c.app.Markers.OfKey(ctx, one, "key-12345")) },
	},
	"createMarker": {func(ctx context.Context, c *clients) error { return of(c.app.Markers.Create(ctx, one, marker)) }},
	"getMarker":    {func(ctx context.Context, c *clients) error { return of(c.app.Markers.Get(ctx, one, two)) }},
	"deleteMarker": {func(ctx context.Context, c *clients) error { return c.app.Markers.Delete(ctx, one, two) }},
	"createDeployMarker": {func(ctx context.Context, c *clients) error {
		return of(c.deploy.Create(ctx, marker))
	}},
	"query": {
		func(ctx context.Context, c *clients) error {
			return of(c.app.Queries.Trend(ctx, one, api.TrendQuery{Question: asked, Interval: "day", Event: []string{"a", "b"}}))
		},
		func(ctx context.Context, c *clients) error {
			return of(c.app.Queries.Breakdown(ctx, one, api.BreakdownQuery{Question: asked, By: "event"}))
		},
		func(ctx context.Context, c *clients) error {
			return of(c.app.Queries.Funnel(ctx, one, api.FunnelQuery{Question: asked, Steps: []api.FunnelQueryStep{{Event: "a"}}, Window: "24h"}))
		},
		func(ctx context.Context, c *clients) error {
			return of(c.app.Queries.Retention(ctx, one, api.RetentionQuery{Question: asked, StartEvent: "a", ReturnEvent: "b", Interval: "day"}))
		},
		func(ctx context.Context, c *clients) error {
			return of(c.app.Queries.Events(ctx, one, api.EventsQuery{Limit: 3}))
		},
		func(ctx context.Context, c *clients) error {
			return drain(c.app.Queries.AllEvents(ctx, one, api.EventsQuery{}))
		},
	},
	"listModelProviders": {
		func(ctx context.Context, c *clients) error { return of(c.app.ModelProviders.List(ctx, one, page)) },
		func(ctx context.Context, c *clients) error { return drain(c.app.ModelProviders.All(ctx, one, page)) },
	},
	"getModelProvider": {func(ctx context.Context, c *clients) error { return of(c.app.ModelProviders.Get(ctx, one, "m")) }},
	"putModelProvider": {func(ctx context.Context, c *clients) error {
		return of(c.app.ModelProviders.Put(ctx, one, "m", api.ModelProviderContent{BaseURL: "http://127.0.0.1:1/v1"}))
	}},
	"deleteModelProvider": {func(ctx context.Context, c *clients) error { return c.app.ModelProviders.Delete(ctx, one, "m") }},
	"listPrivacyJobs": {
		func(ctx context.Context, c *clients) error { return of(c.app.Privacy.List(ctx, one, page)) },
		func(ctx context.Context, c *clients) error { return drain(c.app.Privacy.All(ctx, one, page)) },
	},
	"createPrivacyJob": {func(ctx context.Context, c *clients) error {
		return of(c.app.Privacy.Create(ctx, one, api.NewPrivacyJob{Kind: "export", UserID: new("ada")}))
	}},
	"getPrivacyJob":    {func(ctx context.Context, c *clients) error { return of(c.app.Privacy.Get(ctx, one, two)) }},
	"cancelPrivacyJob": {func(ctx context.Context, c *clients) error { return of(c.app.Privacy.Cancel(ctx, one, two)) }},
	"getPrivacyArchive": {func(ctx context.Context, c *clients) error {
		archive, err := c.app.Privacy.Archive(ctx, one, two)
		if err != nil {
			return err
		}
		return errors.Join(of(io.ReadAll(archive)), archive.Close())
	}},
	"listWebhooks": {
		func(ctx context.Context, c *clients) error { return of(c.app.Webhooks.List(ctx, one, page)) },
		func(ctx context.Context, c *clients) error { return drain(c.app.Webhooks.All(ctx, one, page)) },
	},
	"createWebhook": {func(ctx context.Context, c *clients) error {
		return of(c.app.Webhooks.Create(ctx, one, api.NewWebhook{URL: "https://a.example", Events: []string{"movement.created"}}))
	}},
	"getWebhook": {func(ctx context.Context, c *clients) error { return of(c.app.Webhooks.Get(ctx, one, two)) }},
	"updateWebhook": {func(ctx context.Context, c *clients) error {
		return of(c.app.Webhooks.Update(ctx, one, two, api.WebhookChange{Enabled: new(true)}))
	}},
	"deleteWebhook": {func(ctx context.Context, c *clients) error { return c.app.Webhooks.Delete(ctx, one, two) }},
	"rotateWebhookSecret": {func(ctx context.Context, c *clients) error {
		return of(c.app.Webhooks.RotateSecret(ctx, one, two, api.Rotation{}))
	}},
	"testWebhook": {func(ctx context.Context, c *clients) error { return of(c.app.Webhooks.Test(ctx, one, two)) }},
	"listWebhookDeliveries": {
		func(ctx context.Context, c *clients) error {
			return of(c.app.Webhooks.Deliveries(ctx, one, two, actionpulse.ListDeliveries{Page: page, State: "dead"}))
		},
		func(ctx context.Context, c *clients) error {
			return drain(c.app.Webhooks.AllDeliveries(ctx, one, two, actionpulse.ListDeliveries{}))
		},
	},
	"resendWebhookDelivery": {func(ctx context.Context, c *clients) error {
		return of(c.app.Webhooks.Resend(ctx, one, two, one))
	}},
}

var marker = api.MarkerContent{Version: "1.4.2", TS: new("2026-05-01T12:00:00Z"), Metadata: raw}

var asked = api.Question{From: "2026-05-01T00:00:00Z", To: "2026-05-02T00:00:00Z"}

var watched = api.NewAlert{
	Name: "a", Source: api.AlertSource{Type: "trend", Event: "e"}, Period: "1h",
	Condition: api.AlertCondition{Type: "threshold", Direction: "above", Value: new(1.5)},
}

var alertMethods = map[string][]method{
	"listAlerts": {
		func(ctx context.Context, c *clients) error { return of(c.app.Alerts.List(ctx, one, page)) },
		func(ctx context.Context, c *clients) error { return drain(c.app.Alerts.All(ctx, one, page)) },
	},
	"createAlert": {func(ctx context.Context, c *clients) error { return of(c.app.Alerts.Create(ctx, one, watched)) }},
	"previewAlert": {
		func(ctx context.Context, c *clients) error { return of(c.app.Alerts.Preview(ctx, one, watched, 7)) },
		func(ctx context.Context, c *clients) error { return of(c.app.Alerts.Preview(ctx, one, watched, 0)) },
	},
	"getAlert": {func(ctx context.Context, c *clients) error { return of(c.app.Alerts.Get(ctx, one, two)) }},
	"updateAlert": {func(ctx context.Context, c *clients) error {
		return of(c.app.Alerts.Update(ctx, one, two, api.AlertChange{Name: new("b")}))
	}},
	"deleteAlert": {func(ctx context.Context, c *clients) error { return c.app.Alerts.Delete(ctx, one, two) }},
	"muteAlert": {func(ctx context.Context, c *clients) error {
		return of(c.app.Alerts.Mute(ctx, one, two, api.AlertMute{}))
	}},
	"unmuteAlert":  {func(ctx context.Context, c *clients) error { return of(c.app.Alerts.Unmute(ctx, one, two)) }},
	"resolveAlert": {func(ctx context.Context, c *clients) error { return of(c.app.Alerts.Resolve(ctx, one, two)) }},
	"listAlertHistory": {
		func(ctx context.Context, c *clients) error { return of(c.app.Alerts.History(ctx, one, two, page)) },
		func(ctx context.Context, c *clients) error {
			return drain(c.app.Alerts.AllHistory(ctx, one, two, page))
		},
	},
}
