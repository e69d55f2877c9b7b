package api

// NewOrganization is the body that makes or renames an organization.
type NewOrganization struct {
	Name string `json:"name" maxLength:"200" minLength:"1"`
}

// Organization is one that the caller belongs to.
type Organization struct {
	ID          string  `json:"id"           format:"uuid"`
	Name        string  `json:"name"`
	Role        string  `json:"role"         doc:"The caller's."                 enum:"owner,admin,member,viewer"`
	CreatedAt   string  `json:"created_at"   format:"date-time"`
	SuspendedAt *string `json:"suspended_at" doc:"null while it is not suspended." format:"date-time"`
}

// Member is a user in an organization.
type Member struct {
	UserID   string `json:"user_id"   format:"uuid"`
	Email    string `json:"email"`
	Role     string `json:"role"      enum:"owner,admin,member,viewer"`
	JoinedAt string `json:"joined_at" format:"date-time"`
}

// MemberRole is the body that gives a member another role.
type MemberRole struct {
	Role string `json:"role" enum:"owner,admin,member,viewer"`
}

// NewInvitation is the body that asks somebody into an organization.
type NewInvitation struct {
	Email string `json:"email" maxLength:"254"`
	Role  string `json:"role"  enum:"owner,admin,member,viewer"`
}

// Invitation asks somebody into an organization.
type Invitation struct {
	ID        string  `json:"id"          format:"uuid"`
	Email     string  `json:"email"`
	Role      string  `json:"role"        enum:"owner,admin,member,viewer"`
	CreatedBy *string `json:"created_by"  doc:"A user; null if the operator made it."                          format:"uuid"`
	CreatedAt string  `json:"created_at"  format:"date-time"`
	ExpiresAt string  `json:"expires_at"  format:"date-time"`
	// AcceptedAt and RevokedAt are null as long as it was neither.
	AcceptedAt *string `json:"accepted_at" format:"date-time"`
	RevokedAt  *string `json:"revoked_at"  doc:"Also when its maker has left or may no longer invite." format:"date-time"`
}

// CreatedInvitation is a new invitation with its token and link.
type CreatedInvitation struct {
	Invitation
	Token string `json:"token" doc:"What the invited accepts it with. It is shown once."`
	Link  string `json:"link"  doc:"The path of a page that accepts it, token included. Put your server's address before it and hand it over."`
}

// Acceptance is the body that accepts an invitation.
type Acceptance struct {
	Token    string `json:"token"`
	Password string `json:"password" doc:"That of the user with the invitation's email; if there is none yet, the one they want, of 10 to 1024 bytes."`
}

// Membership is a user's place in an organization.
type Membership struct {
	OrganizationID string `json:"organization_id" format:"uuid"`
	UserID         string `json:"user_id"         format:"uuid"`
	Role           string `json:"role"            enum:"owner,admin,member,viewer"`
}
