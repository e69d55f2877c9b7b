package api

// NewProject is the body that makes or renames a project.
type NewProject struct {
	Name string `json:"name" maxLength:"200" minLength:"1"`
}

// Project is where events are sent to.
type Project struct {
	ID        string `json:"id"         format:"uuid"`
	Name      string `json:"name"`
	CreatedAt string `json:"created_at" format:"date-time"`
}
