package judgeclient

import "strconv"

// ciSigns are the variables by which steps recognise CI systems. All are taken
// away first: the lab may itself run in one.
var ciSigns = []string{
	"CI", "GITHUB_ACTIONS", "GITLAB_CI", "RELEASE_RELEASEID", "TF_BUILD", "BUILDKITE", "CIRCLECI", "BITBUCKET_BUILD_NUMBER", "TRAVIS",
	"APPVEYOR", "DRONE", "JENKINS_URL", "JENKINS_HOME", "CODEBUILD_BUILD_ID",
}

// CISystems are the systems whose variables the lab can give; "none" gives
// none.
var CISystems = []string{"github", "gitlab", "none"}

// ciEnvironment is what a CI system tells a step of its run. A step that is run
// again finds what changes on a re-run changed, and all else as it was; the
// next deploy is another run of another commit.
func ciEnvironment(system string, attempt int, next bool) []string {
	env := append([]string{}, ciSigns...)
	run, commit := "7001", "5f2a9c1de03b47b6a8d1f0c2e4967b3a1d5c8e90"
	if next {
		run, commit = "7002", "0c81d7e5a94f4b13b2c6d8f7a3e1950b6f4d2a78"
	}
	n := strconv.Itoa(attempt)
	switch system {
	case "github":
		return append(
			env, "CI=true", "GITHUB_ACTIONS=true", "GITHUB_REPOSITORY=lab/shop", "GITHUB_RUN_ID="+run, "GITHUB_RUN_NUMBER="+run,
			"GITHUB_RUN_ATTEMPT="+n, "GITHUB_JOB=deploy", "GITHUB_WORKFLOW=release", "GITHUB_SHA="+commit, "GITHUB_REF=refs/heads/main",
			"GITHUB_REF_NAME=main", "GITHUB_SERVER_URL=https://github.com",
		)
	case "gitlab":
		created := "2026-05-01T10:00:00Z"
		if next {
			created = "2026-05-01T11:00:00Z"
		}
		return append(
			env, "CI=true", "GITLAB_CI=true", "CI_PROJECT_PATH=lab/shop", "CI_PIPELINE_ID="+run, "CI_PIPELINE_CREATED_AT="+created,
			"CI_PIPELINE_URL=https://gitlab.example/lab/shop/-/pipelines/"+run, "CI_JOB_NAME=deploy", "CI_JOB_ID="+run+n,
			"CI_JOB_STARTED_AT=2026-05-01T1"+n+":30:00Z", "CI_COMMIT_SHA="+commit, "CI_COMMIT_REF_NAME=main",
		)
	default:
		return env
	}
}
