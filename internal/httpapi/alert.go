package httpapi

import (
	"net/http"
	"strconv"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/alert"
	"github.com/actionpulse/actionpulse/internal/credential"
)

// alertLimit is the most that the body of an alert may hold.
const alertLimit = 64 << 10

// alertRoutes are those of alerts on metrics.
func alertRoutes() []route {
	viewer := access{kinds: []credential.Kind{credential.Access}, role: roleViewer}
	member := access{kinds: []credential.Kind{credential.Access}, role: roleMember}
	const all = "/api/v1/projects/{id}/alerts"
	const one = all + "/{alert_id}"
	return []route{
		{"POST", all, member, jsonBody(alertLimit), mutates, createAlertOperation, (*service).createAlert},
		{"GET", all, viewer, body{}, reads, listAlertsOperation, (*service).listAlerts},
		{"POST", all + "/preview", member, jsonBody(alertLimit), reads, previewAlertOperation, (*service).previewAlert},
		{"GET", one, viewer, body{}, reads, getAlertOperation, (*service).getAlert},
		{"PATCH", one, member, jsonBody(alertLimit), mutates, updateAlertOperation, (*service).updateAlert},
		{"DELETE", one, member, body{}, mutates, deleteAlertOperation, (*service).deleteAlert},
		{"POST", one + "/mute", member, jsonBody(accountLimit), mutates, muteAlertOperation, (*service).muteAlert},
		{"POST", one + "/unmute", member, body{}, mutates, unmuteAlertOperation, (*service).unmuteAlert},
		{"POST", one + "/resolve", member, body{}, mutates, resolveAlertOperation, (*service).resolveAlert},
		{"GET", one + "/history", viewer, body{}, reads, alertHistoryOperation, (*service).alertHistory},
	}
}

// alertParams are the parameters of the methods of one alert.
func alertParams() []param {
	return []param{idParam("id", "The project."), idParam("alert_id", "The alert.")}
}

var createAlertOperation = operation{
	id: "createAlert", tag: tagAlerts, summary: "Make an alert",
	description: "It begins with the last period that is over, and is told by the webhooks alert.fired and alert.resolved. " +
		"A project has at most 100. A repeat makes a second alert.",
	params:  []param{idParam("id", "The project.")},
	request: api.NewAlert{},
	replies: replyCreated("The alert.", api.Alert{}),
	errors:  codes(api.CodeConflict),
}

func (s *service) createAlert(x *exchange) (answer, error) {
	in, err := decode[api.NewAlert](x)
	if err != nil {
		return answer{}, err
	}
	d, err := alert.ReadDefinition(in)
	if err != nil {
		return answer{}, err
	}
	at, err := s.alertPlace(x)
	if err != nil {
		return answer{}, err
	}
	a, err := s.Alerts.Create(x.r.Context(), at, d)
	return s.showAlert(http.StatusCreated, a, err)
}

var listAlertsOperation = operation{
	id: "listAlerts", tag: tagAlerts, summary: "List alerts",
	params:  pageParams(idParam("id", "The project.")),
	replies: replyOK("A page of alerts.", api.List[api.Alert]{}),
}

func (s *service) listAlerts(x *exchange) (answer, error) {
	part, err := x.idPage()
	if err != nil {
		return answer{}, err
	}
	p, err := s.project(x)
	if err != nil {
		return answer{}, err
	}
	all, err := s.Alerts.List(x.r.Context(), p.ID, part.after, part.limit+1)
	if err != nil {
		return answer{}, err
	}
	return pageAnswer(all, part.limit, s.alertOf, func(a *alert.Alert) string { return a.ID })
}

var getAlertOperation = operation{
	id: "getAlert", tag: tagAlerts, summary: "Get an alert and how it stands",
	params:  alertParams(),
	replies: replyOK("The alert.", api.Alert{}),
}

func (s *service) getAlert(x *exchange) (answer, error) {
	at, err := s.alertPlace(x)
	if err != nil {
		return answer{}, err
	}
	a, err := s.Alerts.Get(x.r.Context(), at.ProjectID, at.AlertID)
	return s.showAlert(http.StatusOK, a, err)
}

var updateAlertOperation = operation{
	id: "updateAlert", tag: tagAlerts, summary: "Change an alert",
	description: "What is absent stays as it is. If anything but the name changes, it begins anew with a period that was not judged " +
		"yet; if it fired, it is resolved for the reason changed.",
	params:  alertParams(),
	request: api.AlertChange{},
	replies: replyOK("The alert.", api.Alert{}),
}

func (s *service) updateAlert(x *exchange) (answer, error) {
	in, err := decode[api.AlertChange](x)
	if err != nil {
		return answer{}, err
	}
	at, err := s.alertPlace(x)
	if err != nil {
		return answer{}, err
	}
	a, err := s.Alerts.Update(x.r.Context(), at, func(d *alert.Definition) error { return d.Edit(in) })
	return s.showAlert(http.StatusOK, a, err)
}

var deleteAlertOperation = operation{
	id: "deleteAlert", tag: tagAlerts, summary: "Delete an alert",
	description: "Its history goes with it. If it fires, it is resolved for the reason deleted.",
	params:      alertParams(),
	replies:     replyNothing("It is deleted."),
}

func (s *service) deleteAlert(x *exchange) (answer, error) {
	at, err := s.alertPlace(x)
	if err != nil {
		return answer{}, err
	}
	return changed(s.Alerts.Delete(x.r.Context(), at))
}

var alertHistoryOperation = operation{
	id: "listAlertHistory", tag: tagAlerts, summary: "List what has become of an alert, latest first",
	description: "With the release markers near each change. An entry is kept for 180 days.",
	params:      pageParams(alertParams()...),
	replies:     replyOK("A page of entries.", api.List[api.AlertEntry]{}),
}

func (s *service) alertHistory(x *exchange) (answer, error) {
	part, err := x.page()
	if err != nil {
		return answer{}, err
	}
	before, err := part.number()
	if err != nil {
		return answer{}, err
	}
	at, err := s.alertPlace(x)
	if err != nil {
		return answer{}, err
	}
	all, err := s.Alerts.History(x.r.Context(), at.ProjectID, alert.HistoryParams{
		AlertID: at.AlertID, Before: before, Limit: part.limit + 1,
	})
	if err != nil {
		return answer{}, err
	}
	return pageAnswer(all, part.limit, alertEntryOf, func(e *alert.Entry) string { return strconv.FormatInt(e.Number, 10) })
}

// alertPlace finds the project in the path, and names the alert there.
func (s *service) alertPlace(x *exchange) (alert.Place, error) {
	p, err := s.project(x)
	return alert.Place{
		Actor: s.actor(x), OrganizationID: p.OrganizationID, ProjectID: p.ID, AlertID: x.r.PathValue("alert_id"),
	}, err
}

// showAlert answers with an alert, or with why there is none.
func (s *service) showAlert(status int, a alert.Alert, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(status, s.alertOf(&a))
}

// alertOf is an alert as it is sent.
func (s *service) alertOf(a *alert.Alert) api.Alert {
	out := api.Alert{
		ID: a.ID, ProjectID: a.ProjectID, Name: a.Name, Source: alert.SourceOf(&a.Source), Period: string(a.Length), Timezone: a.Timezone,
		Condition: alert.ConditionOf(&a.Condition, a.Kind), For: a.For, ResolveAfter: a.ResolveAfter, State: string(a.State),
		FiringSince: api.OptionalTime(a.FiringSince), Problem: api.OptionalText(string(a.Problem)), ProblemSince: api.OptionalTime(a.ProblemSince),
		Muted: a.Muted(s.Now()), NextPeriod: alert.PeriodOf(a.Next), CreatedAt: api.TimeText(a.CreatedAt), UpdatedAt: api.TimeText(a.UpdatedAt),
	}
	if out.Muted {
		out.MutedUntil = api.OptionalTime(a.MutedUntil)
	}
	if a.Last != nil {
		out.LastEvaluation = new(evaluationOf(a.Last))
	}
	return out
}

func evaluationOf(e *alert.Evaluation) api.AlertEvaluation {
	return api.AlertEvaluation{
		Period: alert.PeriodOf(e.Period), Verdict: string(e.Verdict), Problem: api.OptionalText(string(e.Problem)),
		Value: e.Value, Baseline: e.Baseline, Change: e.Change(), At: api.OptionalTime(e.At),
	}
}

func alertEntryOf(e *alert.Entry) api.AlertEntry {
	out := api.AlertEntry{
		ID: e.ID, Kind: string(e.Kind), At: api.TimeText(e.At), UserID: api.OptionalText(e.UserID), Reason: api.OptionalText(string(e.Reason)),
		Value: e.Value, Baseline: e.Baseline, Change: e.Change(), Problem: api.OptionalText(string(e.Problem)),
		Until: api.OptionalTime(e.Until), Muted: e.Muted, Releases: alert.ReleasesWire(e.Releases),
	}
	if !e.Period.End.IsZero() {
		out.Period = new(alert.PeriodOf(e.Period))
	}
	if e.Periods != 0 {
		out.Periods = &e.Periods
	}
	return out
}
