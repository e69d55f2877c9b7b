package httpapi

import (
	"slices"

	"github.com/actionpulse/actionpulse/internal/credential"
)

// accountRoutes are those of users, organizations, projects and keys. Reading
// needs the role viewer, managing the role admin.
func accountRoutes() []route {
	open := access{open: true}
	viewer := access{kinds: []credential.Kind{credential.Access}, role: roleViewer}
	admin := access{kinds: []credential.Kind{credential.Access}, role: roleAdmin}
	suspended := access{kinds: []credential.Kind{credential.Access}, role: roleViewer, suspended: true}
	const own = "/api/v1/organizations/{id}"
	return slices.Concat([]route{
		{"POST", "/api/v1/auth/login", open, jsonBody(authLimit), mutates, loginOperation, (*service).login},
		{"POST", "/api/v1/auth/refresh", open, jsonBody(authLimit), mutates, refreshOperation, (*service).refresh},
		{"POST", "/api/v1/auth/logout", viewer, body{}, mutates, logoutOperation, (*service).logout},
		{"POST", "/api/v1/auth/password", viewer, jsonBody(authLimit), mutates, changePasswordOperation, (*service).changePassword},
		{"POST", "/api/v1/invitations/accept", open, jsonBody(authLimit), mutates, acceptInvitationOperation, (*service).acceptInvitation},

		{"GET", invitePath, open, body{}, reads, invitePageOperation, (*service).invitePage},

		{"GET", "/api/v1/organizations", viewer, body{}, reads, listOrganizationsOperation, (*service).listOrganizations},
		{"POST", "/api/v1/organizations", admin, jsonBody(accountLimit), mutates, createOrganizationOperation, (*service).createOrganization},
		{"GET", own, viewer, body{}, reads, getOrganizationOperation, (*service).getOrganization},
		{"PATCH", own, admin, jsonBody(accountLimit), mutates, renameOrganizationOperation, (*service).renameOrganization},
		{"GET", own + "/members", viewer, body{}, reads, listMembersOperation, (*service).listMembers},
		{"PATCH", own + "/members/{user_id}", admin, jsonBody(accountLimit), mutates, setRoleOperation, (*service).setRole},
		{"DELETE", own + "/members/{user_id}", viewer, body{}, mutates, removeMemberOperation, (*service).removeMember},
		{"GET", own + "/invitations", viewer, body{}, reads, listInvitationsOperation, (*service).listInvitations},
		{"POST", own + "/invitations", admin, jsonBody(accountLimit), mutates, createInvitationOperation, (*service).createInvitation},
		{"DELETE", own + "/invitations/{invitation_id}", admin, body{}, mutates, revokeInvitationOperation, (*service).revokeInvitation},
		{"GET", own + "/usage", suspended, body{}, reads, getUsageOperation, (*service).getUsage},
		{"GET", own + "/audit-log", admin, body{}, reads, listAuditLogOperation, (*service).listAuditLog},

		{"GET", "/api/v1/projects", viewer, body{}, reads, listProjectsOperation, (*service).listProjects},
		{"POST", "/api/v1/projects", admin, jsonBody(accountLimit), mutates, createProjectOperation, (*service).createProject},
		{"GET", "/api/v1/projects/{id}", viewer, body{}, reads, getProjectOperation, (*service).getProject},
		{"PATCH", "/api/v1/projects/{id}", admin, jsonBody(accountLimit), mutates, updateProjectOperation, (*service).updateProject},
		{"POST", "/api/v1/projects/{id}/ingest-keys/import", admin, jsonBody(accountLimit), mutates, importKeyOperation, (*service).importKey},
	}, ingestKeys.routes(viewer, admin), projectKeys.routes(viewer, admin), ciTokens.routes(viewer, admin))
}
