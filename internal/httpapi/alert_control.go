package httpapi

import (
	"net/http"
	"strconv"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/alert"
	"github.com/actionpulse/actionpulse/internal/fault"
)

var muteAlertOperation = operation{
	id: "muteAlert", tag: tagAlerts, summary: "Mute an alert until a time, or for ever",
	description: "While it is muted it is judged and recorded, and nothing is sent. What has begun to fire and still does when the " +
		"mute ends is told at its next bad period.",
	params:  alertParams(),
	request: api.AlertMute{},
	replies: replyOK("The alert.", api.Alert{}),
}

func (s *service) muteAlert(x *exchange) (answer, error) {
	in, err := decode[api.AlertMute](x)
	if err != nil {
		return answer{}, err
	}
	var until time.Time
	if in.Until != nil {
		if until, err = time.Parse(time.RFC3339Nano, *in.Until); err != nil || until.Year() > 9999 {
			return answer{}, fault.Field("until", "until must be a time as in RFC 3339, like 2024-01-01T00:00:00Z")
		}
	}
	at, err := s.alertPlace(x)
	if err != nil {
		return answer{}, err
	}
	a, err := s.Alerts.Mute(x.r.Context(), at, until)
	return s.showAlert(http.StatusOK, a, err)
}

var unmuteAlertOperation = operation{
	id: "unmuteAlert", tag: tagAlerts, summary: "End the mute of an alert",
	params:  alertParams(),
	replies: replyOK("The alert.", api.Alert{}),
}

func (s *service) unmuteAlert(x *exchange) (answer, error) {
	at, err := s.alertPlace(x)
	if err != nil {
		return answer{}, err
	}
	a, err := s.Alerts.Unmute(x.r.Context(), at)
	return s.showAlert(http.StatusOK, a, err)
}

var resolveAlertOperation = operation{
	id: "resolveAlert", tag: tagAlerts, summary: "Resolve an alert by hand",
	description: "It fires again as soon as `for` further periods in a row are bad; mute it to hear nothing. One that does not fire stays as it is.",
	params:      alertParams(),
	replies:     replyOK("The alert.", api.Alert{}),
}

func (s *service) resolveAlert(x *exchange) (answer, error) {
	at, err := s.alertPlace(x)
	if err != nil {
		return answer{}, err
	}
	a, err := s.Alerts.Resolve(x.r.Context(), at)
	return s.showAlert(http.StatusOK, a, err)
}

var previewAlertOperation = operation{
	id: "previewAlert", tag: tagAlerts, summary: "Judge the latest periods as an alert would have",
	description: "Nothing is stored. It is a read, although it is a POST.",
	params: []param{
		idParam("id", "The project."),
		textParam("periods", "How many periods, 1 to 50; 24 if absent."),
	},
	request: api.NewAlert{},
	replies: replyOK("The periods, the latest first.", api.AlertPreview{}),
	errors:  codes(api.CodeQueryTimeout),
}

func (s *service) previewAlert(x *exchange) (answer, error) {
	in, err := decode[api.NewAlert](x)
	if err != nil {
		return answer{}, err
	}
	p := alert.PreviewParams{Periods: alert.DefaultPreview}
	if p.Definition, err = alert.ReadDefinition(in); err != nil {
		return answer{}, err
	}
	if err := p.Definition.Validate(); err != nil {
		return answer{}, err
	}
	text, err := x.text("periods")
	if err != nil {
		return answer{}, err
	}
	if text != "" {
		if p.Periods, err = strconv.Atoi(text); err != nil || p.Periods < 1 || p.Periods > alert.MaxPreview {
			return answer{}, fault.Field("periods", "periods must be a whole number from 1 to %d", alert.MaxPreview)
		}
	}
	project, err := s.project(x)
	if err != nil {
		return answer{}, err
	}
	p.Project, p.ProjectMade = project.Number, project.CreatedAt
	periods, err := s.Alerts.Preview(x.r.Context(), p)
	if err != nil {
		return answer{}, err
	}
	out := api.AlertPreview{Items: make([]api.AlertEvaluation, len(periods))}
	for i := range periods {
		out.Items[i] = evaluationOf(&periods[i].Evaluation)
		out.Items[i].State = new(string(periods[i].State))
	}
	return jsonAnswer(http.StatusOK, out)
}
