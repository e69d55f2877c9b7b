package api

// Login is the body of a login.
type Login struct {
	Email          string  `json:"email"                     maxLength:"254"`
	Password       string  `json:"password"`
	OrganizationID *string `json:"organization_id,omitempty" doc:"Where to work; the organization that the user has belonged to longest if absent." format:"uuid"`
}

// Refresh is the body that spends a refresh token.
type Refresh struct {
	RefreshToken   string  `json:"refresh_token"`
	OrganizationID *string `json:"organization_id,omitempty" doc:"Where to work from now on; where the session was if absent." format:"uuid"`
}

// Tokens are what a user goes on with. They are shown once.
type Tokens struct {
	AccessToken    string `json:"access_token"    doc:"Goes into Authorization: Bearer …."`
	RefreshToken   string `json:"refresh_token"   doc:"Can be spent once, within 30 days, for new tokens. If it is used again, the session ends."`
	ExpiresIn      int64  `json:"expires_in"      doc:"How many seconds the access token works."`
	OrganizationID string `json:"organization_id" doc:"Where the access token works."                                                                          format:"uuid"`
	UserID         string `json:"user_id"         format:"uuid"`
}

// PasswordChange is the body that gives the caller another password.
type PasswordChange struct {
	CurrentPassword string `json:"current_password"`
	NewPassword     string `json:"new_password"     doc:"10 to 1024 bytes."`
}
