package actionpulse

import (
	"context"
	"io"
	"iter"
	"net/http"

	"github.com/actionpulse/actionpulse/api"
)

// Privacy exports and deletes the data of one person of a project.
type Privacy struct{ link *link }

const (
	privacyJobsPath = projectPath + "/privacy-jobs"
	privacyJobPath  = privacyJobsPath + "/{job_id}"
)

// List returns a page of a project's jobs, the latest first.
func (p *Privacy) List(ctx context.Context, projectID string, page Page) (*api.List[api.PrivacyJob], error) {
	return list[api.PrivacyJob](ctx, p.link, reads("listPrivacyJobs", privacyJobsPath, projectID).ask(page.query()))
}

// All yields every job from a page on.
func (p *Privacy) All(ctx context.Context, projectID string, page Page) iter.Seq2[api.PrivacyJob, error] {
	return all(page, func(page Page) (*api.List[api.PrivacyJob], error) { return p.List(ctx, projectID, page) })
}

// Create makes a job, which then runs by itself. While one about the person is
// not finished it is refused with privacy_job_active, which the client waits
// for and repeats.
func (p *Privacy) Create(ctx context.Context, projectID string, n api.NewPrivacyJob) (*api.PrivacyJob, error) {
	return fetch[api.PrivacyJob](ctx, p.link, changes("createPrivacyJob", http.MethodPost, privacyJobsPath, projectID).with(n))
}

// Get returns a job; not_found if there is none.
func (p *Privacy) Get(ctx context.Context, projectID, jobID string) (*api.PrivacyJob, error) {
	return fetch[api.PrivacyJob](ctx, p.link, reads("getPrivacyJob", privacyJobPath, projectID, jobID))
}

// Cancel cancels a job; conflict if it is finished, or has begun to erase and its
// server is not lost.
func (p *Privacy) Cancel(ctx context.Context, projectID, jobID string) (*api.PrivacyJob, error) {
	return fetch[api.PrivacyJob](ctx, p.link, changes("cancelPrivacyJob", http.MethodPost, privacyJobPath+"/cancel", projectID, jobID))
}

// Archive returns the archive of a finished export: JSON Lines, an object with
// a type on each line, of which the last one is of type end. The caller closes
// it. An archive that is cut short ends with an error of Read, never with
// io.EOF. It is refused with conflict until the export has succeeded, and with
// not_found once the archive is kept no more.
func (p *Privacy) Archive(ctx context.Context, projectID, jobID string) (io.ReadCloser, error) {
	c := reads("getPrivacyArchive", privacyJobPath+"/archive", projectID, jobID)
	c.stream = true
	r, err := p.link.send(ctx, c)
	if err != nil {
		return nil, err
	}
	return r.stream, nil
}
