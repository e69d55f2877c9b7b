package httpapi

import (
	"math"
	"net/http"
	"strconv"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/retention"
)

var listProjectsOperation = operation{
	id: "listProjects", tag: tagProjects, summary: "List the projects of the organization",
	params:  pageParams(),
	replies: replyOK("A page of projects.", api.List[api.Project]{}),
}

func (s *service) listProjects(x *exchange) (answer, error) {
	p, err := x.page()
	if err != nil {
		return answer{}, err
	}
	after, err := p.number()
	if err != nil {
		return answer{}, err
	}
	all, err := s.Projects.List(x.r.Context(), x.caller.OrganizationID, uint32(min(after, math.MaxUint32)), p.limit+1)
	if err != nil {
		return answer{}, err
	}
	return pageAnswer(all, p.limit, s.projectOf, func(p *account.Project) string {
		return strconv.FormatUint(uint64(p.Number), 10)
	})
}

var createProjectOperation = operation{
	id: "createProject", tag: tagProjects, summary: "Make a project",
	description: "It has no keys yet. A repeat makes a second one.",
	request:     api.NewProject{},
	replies:     replyCreated("The project.", api.Project{}),
}

func (s *service) createProject(x *exchange) (answer, error) {
	in, err := decode[api.NewProject](x)
	if err != nil {
		return answer{}, err
	}
	p, err := s.Projects.Create(x.r.Context(), s.actor(x), x.caller.OrganizationID, in.Name)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusCreated, s.projectOf(&p))
}

var getProjectOperation = operation{
	id: "getProject", tag: tagProjects, summary: "Get a project",
	params:  []param{idParam("id", "The project.")},
	replies: replyOK("The project.", api.Project{}),
}

func (s *service) getProject(x *exchange) (answer, error) {
	p, err := s.project(x)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, s.projectOf(&p))
}

var updateProjectOperation = operation{
	id: "updateProject", tag: tagProjects, summary: "Change a project's name, or how long its data is kept",
	description: "What is older than its retention is deleted within about an hour, for good; what was used stays counted. A repeat of a deleted event " +
		"is a duplicate for as long as ids of events are remembered.",
	params:  []param{idParam("id", "The project.")},
	request: api.ProjectChange{},
	replies: replyOK("The project.", api.Project{}),
	errors:  codes(api.CodePrivacyJobActive),
}

func (s *service) updateProject(x *exchange) (answer, error) {
	in, err := decode[api.ProjectChange](x)
	if err != nil {
		return answer{}, err
	}
	p, err := s.project(x)
	if err != nil {
		return answer{}, err
	}
	c := account.ProjectChange{Name: in.Name}
	if in.Retention != nil {
		c.Retention = retention.Change{Events: daysIn(in.Retention.EventsDays), Replays: daysIn(in.Retention.ReplaysDays)}
	}
	if p, err = s.Projects.Update(x.r.Context(), s.actor(x), p, c); err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, s.projectOf(&p))
}

// project finds the project in the path, in the caller's organization.
func (s *service) project(x *exchange) (account.Project, error) {
	return s.Projects.Get(x.r.Context(), x.caller.OrganizationID, x.r.PathValue("id"))
}

// projectOf is a project as it is sent.
func (s *service) projectOf(p *account.Project) api.Project {
	return api.Project{ID: p.ID, Name: p.Name, CreatedAt: api.TimeText(p.CreatedAt), Retention: api.ProjectRetention{
		Retention: retentionOf(p.Retention), InForce: retentionOf(s.Projects.InForce(*p)),
	}}
}

func retentionOf(d retention.Days) api.Retention {
	return api.Retention{EventsDays: daysOut(d.Events), ReplaysDays: daysOut(d.Replays)}
}

// daysIn and daysOut turn null into none and back; what is absent stays absent.
func daysIn(days **int) *int {
	switch {
	case days == nil:
		return nil
	case *days == nil:
		return new(0)
	default:
		return *days
	}
}

func daysOut(days int) *int {
	if days == 0 {
		return nil
	}
	return &days
}
