package api

// NewProject is the body that makes a project.
type NewProject struct {
	Name string `json:"name" maxLength:"200" minLength:"1"`
}

// ProjectChange is the body that changes a project: what it leaves out stays as
// it is.
type ProjectChange struct {
	Name      *string          `json:"name,omitempty"      maxLength:"200" minLength:"1"`
	Retention *RetentionChange `json:"retention,omitempty"`
}

// RetentionChange changes how long a project's data is kept. A member that is
// nil is left out and stays as it is, a pointer to nil is null, and new(new(30))
// are 30 days.
type RetentionChange struct {
	EventsDays  **int `json:"events_days,omitempty"  nullable:"true" maximum:"36500" minimum:"1" doc:"Left out, it stays; null leaves it to the server's setting. Never less than the time for which ids of events are remembered."`
	ReplaysDays **int `json:"replays_days,omitempty" nullable:"true" maximum:"36500" minimum:"1" doc:"Left out, it stays; null leaves it to the server's setting."`
}

// Retention is how long a project's data is kept.
type Retention struct {
	EventsDays  *int `json:"events_days"  nullable:"true" maximum:"36500" minimum:"1" doc:"Days after which an event is deleted, by its time and its receipt, whichever is later; null is as the server's setting says. Never less than the time for which ids of events are remembered."`
	ReplaysDays *int `json:"replays_days" nullable:"true" maximum:"36500" minimum:"1" doc:"Days after its receipt after which a chunk of a session replay is deleted; null is as the server's setting says."`
}

// Project is where events are sent to.
type Project struct {
	ID        string           `json:"id"         format:"uuid"`
	Name      string           `json:"name"`
	Retention ProjectRetention `json:"retention"`
	CreatedAt string           `json:"created_at" format:"date-time"`
}

// ProjectRetention is how long a project's data is kept.
type ProjectRetention struct {
	Retention

	InForce Retention `json:"in_force" doc:"What counts, the server's settings included: null is for ever."`
}
