package api

// NewPrivacyJob is the body that makes a privacy job: exactly one of the ids is
// set.
type NewPrivacyJob struct {
	Kind   string  `json:"kind"              enum:"export,delete"`
	UserID *string `json:"user_id,omitempty" doc:"A user: what was sent with the id, and what belongs to the user by links."                        maxLength:"200" minLength:"1"`
	AnonID *string `json:"anon_id,omitempty" doc:"An anonymous id: all that was sent with it." maxLength:"200" minLength:"1"`
}

// PrivacyJob is the work on one person's data.
type PrivacyJob struct {
	ID              string  `json:"id"                 format:"uuid"`
	ProjectID       string  `json:"project_id"         format:"uuid"`
	Kind            string  `json:"kind"               enum:"export,delete"`
	UserID          *string `json:"user_id"            doc:"Whom it is about; null if that was said by anon_id."`
	AnonID          *string `json:"anon_id"            doc:"Whom it is about; null if that was said by user_id."`
	Status          string  `json:"status"             doc:"queued also while a step that has failed waits to be done again, for which error says why, and while the server that has it is down." enum:"queued,running,succeeded,failed,cancelled"`
	Progress        float64 `json:"progress"           doc:"From 0 to 1; it never falls."                                                                     maximum:"1" minimum:"0"`
	ErasedFromLogAt *string `json:"erased_from_log_at" doc:"When the last file was written anew without what was deleted; null before that and for exports." format:"date-time"`
	ArchiveBytes    *int64  `json:"archive_bytes"      doc:"The length of the archive of a finished export; null if there is none."`
	ArchiveUntil    *string `json:"archive_until"      doc:"Until when the archive is kept; null if there is none any more."                                  format:"date-time"`
	Error           *string `json:"error"              doc:"Why its last step has failed; null if it has not."`
	CreatedAt       string  `json:"created_at"         format:"date-time"`
	StartedAt       *string `json:"started_at"         format:"date-time"`
	FinishedAt      *string `json:"finished_at"        format:"date-time"`
}

// PrivacyExport is the first line of an archive, beside its type.
type PrivacyExport struct {
	JobID     string  `json:"job_id"     format:"uuid"`
	ProjectID string  `json:"project_id" format:"uuid"`
	UserID    *string `json:"user_id"`
	AnonID    *string `json:"anon_id"`
	AsOf      string  `json:"as_of"      doc:"Everything acknowledged before that time is in the archive." format:"date-time"`
}
