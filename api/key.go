package api

// NewIngestKey is the body that makes an ingest key.
type NewIngestKey struct {
	Name    string   `json:"name"              maxLength:"200"                                                                                   minLength:"1"`
	Kind    string   `json:"kind"              doc:"browser for pages and apps, which everybody can read; server for what only you can read." enum:"browser,server"`
	Origins []string `json:"origins,omitempty" doc:"For a browser token: the origins that may use it, like https://shop.example; any if absent." maxItems:"100"`
	Rate    *float64 `json:"rate,omitempty"    doc:"Requests a second; the server's default if absent, 0 for no limit."                          maximum:"1000000000" minimum:"0"`
	Burst   *int     `json:"burst,omitempty"   doc:"Requests at once; the server's default if absent."                                           maximum:"1000000000" minimum:"1"`
}

// NewKey is the body that makes a project key or a CI/CD token.
type NewKey struct {
	Name string `json:"name" maxLength:"200" minLength:"1"`
}

// ImportedKey is the body that imports a key which another system has made.
type ImportedKey struct {
	Name  string `json:"name"  maxLength:"200"                                                                   minLength:"1"`
	Token string `json:"token" doc:"The key as your clients send it: 1 to 512 bytes, no control characters." minLength:"1"`
}

// Rotation is the body that replaces a key.
type Rotation struct {
	OverlapSeconds *int64 `json:"overlap_seconds,omitempty" default:"86400" doc:"How long the old one works beside the new one; 0 ends it at once." maximum:"2592000" minimum:"0"`
}

// Key is an ingest key, a project key or a CI/CD token. Its secret is not
// shown again.
type Key struct {
	ID        string   `json:"id"                format:"uuid"`
	Name      string   `json:"name"`
	Kind      string   `json:"kind"              enum:"browser,server,legacy,project,ci"`
	Prefix    string   `json:"prefix"            doc:"What the secret begins with."`
	LastFour  string   `json:"last_four"         doc:"What the secret ends with; of a short imported one less is shown."`
	Origins   []string `json:"origins,omitempty" doc:"The origins that may use a browser token; any if absent."`
	Rate      *float64 `json:"rate,omitempty"    doc:"Requests a second; the server's default if absent, 0 for no limit."`
	Burst     *int     `json:"burst,omitempty"   doc:"Requests at once; the server's default if absent."`
	CreatedAt string   `json:"created_at"        format:"date-time"`
	ExpiresAt *string  `json:"expires_at"        doc:"When it ends; null if it does not by itself."                      format:"date-time"`
	RevokedAt *string  `json:"revoked_at"        format:"date-time"`
}

// CreatedKey is a new key with its secret.
type CreatedKey struct {
	Key
	Token string `json:"token" doc:"The secret. It is shown once."`
}
