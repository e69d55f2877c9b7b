package api

// AuditEntry tells of one change.
type AuditEntry struct {
	ID        string            `json:"id"         format:"uuid"`
	At        string            `json:"at"         format:"date-time"`
	Action    string            `json:"action"     doc:"What was done, like key.revoked. It is never renamed; others may be added."`
	Actor     AuditActor        `json:"actor"`
	Object    AuditObject       `json:"object"`
	ProjectID *string           `json:"project_id" doc:"null if it was not done to a project or within one."                        format:"uuid"`
	Details   map[string]string `json:"details"    doc:"A few more words, like the old and the new role. Never a secret."`
}

// AuditActor is who made a change.
type AuditActor struct {
	UserID    *string `json:"user_id"    doc:"null for the operator at the machine, and for whoever is not known to be a user, as in a failed login." format:"uuid"`
	RequestID *string `json:"request_id" doc:"The X-Request-Id; null if there was no request."`
	Address   *string `json:"address"    doc:"The client's address; null if there was no request."`
}

// AuditObject is what a change was made to.
type AuditObject struct {
	Kind string `json:"kind" doc:"key, member, invitation, project, organization, session or user."`
	ID   string `json:"id"   format:"uuid"`
}
