package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/privacy"
)

// Privacy manages privacy jobs, of projects that exist; see privacy.Service.
type Privacy interface {
	Create(ctx context.Context, by auditlog.Actor, at privacy.Place, kind privacy.Kind, p privacy.Person) (privacy.Job, error)
	List(ctx context.Context, at privacy.Place, before string, limit int) ([]privacy.Job, error)
	Get(ctx context.Context, at privacy.Place, jobID string) (privacy.Job, error)
	Cancel(ctx context.Context, by auditlog.Actor, at privacy.Place, jobID string) (privacy.Job, error)
	Archive(ctx context.Context, by auditlog.Actor, at privacy.Place, jobID string) (*os.File, error)
}

// privacyRoutes are those of privacy jobs. An archive shows all that is known
// of a person: it is for those who may make one.
func privacyRoutes() []route {
	viewer := access{kinds: []credential.Kind{credential.Access}, role: roleViewer}
	admin := access{kinds: []credential.Kind{credential.Access}, role: roleAdmin}
	const all = "/api/v1/projects/{id}/privacy-jobs"
	const one = all + "/{job_id}"
	return []route{
		{"POST", all, admin, jsonBody(accountLimit), mutates, createPrivacyJobOperation, (*service).createPrivacyJob},
		{"GET", all, viewer, body{}, reads, listPrivacyJobsOperation, (*service).listPrivacyJobs},
		{"GET", one, viewer, body{}, reads, getPrivacyJobOperation, (*service).getPrivacyJob},
		{"POST", one + "/cancel", admin, body{}, mutates, cancelPrivacyJobOperation, (*service).cancelPrivacyJob},
		{"GET", one + "/archive", admin, body{}, reads, getPrivacyArchiveOperation, (*service).getPrivacyArchive},
	}
}

func privacyParams() []param {
	return []param{idParam("id", "The project."), idParam("job_id", "The job.")}
}

var createPrivacyJobOperation = operation{
	id: "createPrivacyJob", tag: tagPrivacy, summary: "Export or delete one person's data",
	description: "The job runs by itself and ends, also after a restart. While it does, changes to what it is about are refused with " +
		"privacy_job_active, among them a second job about the person. Events are taken in and keyed work is done as ever.",
	params:  []param{idParam("id", "The project.")},
	request: api.NewPrivacyJob{},
	replies: []reply{{status: http.StatusAccepted, doc: "The job, which is queued.", body: api.PrivacyJob{}}},
	errors:  codes(api.CodePrivacyJobActive),
}

func (s *service) createPrivacyJob(x *exchange) (answer, error) {
	in, err := decode[api.NewPrivacyJob](x)
	if err != nil {
		return answer{}, err
	}
	p, err := s.project(x)
	if err != nil {
		return answer{}, err
	}
	person := privacy.Person{UserID: textOf(in.UserID), AnonID: textOf(in.AnonID)}
	j, err := s.Privacy.Create(x.r.Context(), s.actor(x), privacyPlace(&p), privacy.Kind(in.Kind), person)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusAccepted, privacyJobOf(&j))
}

var listPrivacyJobsOperation = operation{
	id: "listPrivacyJobs", tag: tagPrivacy, summary: "List privacy jobs, latest first",
	params:  pageParams(idParam("id", "The project.")),
	replies: replyOK("A page of jobs.", api.List[api.PrivacyJob]{}),
}

func (s *service) listPrivacyJobs(x *exchange) (answer, error) {
	part, err := x.idPage()
	if err != nil {
		return answer{}, err
	}
	p, err := s.project(x)
	if err != nil {
		return answer{}, err
	}
	all, err := s.Privacy.List(x.r.Context(), privacyPlace(&p), part.after, part.limit+1)
	if err != nil {
		return answer{}, err
	}
	return pageAnswer(all, part.limit, privacyJobOf, func(j *privacy.Job) string { return j.ID })
}

var getPrivacyJobOperation = operation{
	id: "getPrivacyJob", tag: tagPrivacy, summary: "Get a privacy job",
	params:  privacyParams(),
	replies: replyOK("The job.", api.PrivacyJob{}),
}

func (s *service) getPrivacyJob(x *exchange) (answer, error) {
	p, err := s.project(x)
	if err != nil {
		return answer{}, err
	}
	j, err := s.Privacy.Get(x.r.Context(), privacyPlace(&p), x.r.PathValue("job_id"))
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, privacyJobOf(&j))
}

var cancelPrivacyJobOperation = operation{
	id: "cancelPrivacyJob", tag: tagPrivacy, summary: "Cancel a privacy job",
	description: "An export until it is finished, a deletion until it has begun to erase; after that the answer is conflict. " +
		"A deletion of another server, of which nothing was heard for an hour, has failed then. A repeat changes nothing.",
	params:  privacyParams(),
	replies: replyOK("The job, which is cancelled or has failed.", api.PrivacyJob{}),
	errors:  codes(api.CodeConflict),
}

func (s *service) cancelPrivacyJob(x *exchange) (answer, error) {
	p, err := s.project(x)
	if err != nil {
		return answer{}, err
	}
	j, err := s.Privacy.Cancel(x.r.Context(), s.actor(x), privacyPlace(&p), x.r.PathValue("job_id"))
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, privacyJobOf(&j))
}

var getPrivacyArchiveOperation = operation{
	id: "getPrivacyArchive", tag: tagPrivacy, summary: "Download the archive of a finished export",
	description: "JSON Lines: an object on each line, with its type as its first member. The first is of type export and says whom it is about " +
		"and as of which time; the last is of type end and counts the others, and those whose content is lost or damaged in storage. If it fails on the way the connection is cut. " +
		"Until the export has succeeded the answer is conflict; when the archive is kept no more it is not_found.",
	params:  privacyParams(),
	replies: []reply{{status: http.StatusOK, doc: "The archive.", body: "", kind: "application/jsonl"}},
	errors:  codes(api.CodeConflict),
}

func (s *service) getPrivacyArchive(x *exchange) (answer, error) {
	p, err := s.project(x)
	if err != nil {
		return answer{}, err
	}
	jobID := x.r.PathValue("job_id")
	file, err := s.Privacy.Archive(x.r.Context(), s.actor(x), privacyPlace(&p), jobID)
	if err != nil {
		return answer{}, err
	}
	if x.r.Method == http.MethodHead {
		return answer{status: http.StatusOK, contentType: jsonLines}, file.Close()
	}
	x.w.Header()["Content-Disposition"] = []string{`attachment; filename="` + jobID + `.jsonl"`}
	return answer{status: http.StatusOK, contentType: jsonLines, stream: func(w io.Writer) (err error) {
		defer func() { err = errors.Join(err, file.Close()) }()
		return sendFile(x, w, file)
	}}, nil
}

const (
	jsonLines = "application/jsonl"
	// filePart is how much of a file is sent at a time.
	filePart = 1 << 20
)

// sendFile sends a file. The client has some time for each part.
func sendFile(x *exchange, w io.Writer, file io.Reader) error {
	connection := http.NewResponseController(x.w)
	for {
		if err := connection.SetWriteDeadline(time.Now().Add(writeSlack)); err != nil {
			return err
		}
		n, err := io.CopyN(w, file, filePart)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return clientGone(err)
		case n < filePart:
			return nil
		}
	}
}

func privacyPlace(p *account.Project) privacy.Place {
	return privacy.Place{OrganizationID: p.OrganizationID, ProjectID: p.ID, Number: p.Number}
}

// thousandths make a whole.
const thousandths = 1000

// privacyJobOf is a job as it is sent.
func privacyJobOf(j *privacy.Job) api.PrivacyJob {
	out := api.PrivacyJob{
		ID: j.ID, ProjectID: j.Place.ProjectID, Kind: string(j.Kind), UserID: api.OptionalText(j.Person.UserID),
		AnonID: api.OptionalText(j.Person.AnonID), Status: string(j.Status), Progress: float64(j.Progress) / thousandths,
		ErasedFromLogAt: api.OptionalTime(j.ErasedFromLogAt), ArchiveUntil: api.OptionalTime(j.ArchiveUntil), Error: api.OptionalText(j.Error),
		CreatedAt: api.TimeText(j.CreatedAt), StartedAt: api.OptionalTime(j.StartedAt), FinishedAt: api.OptionalTime(j.FinishedAt),
	}
	if j.ArchiveBytes > 0 {
		out.ArchiveBytes = &j.ArchiveBytes
	}
	return out
}
