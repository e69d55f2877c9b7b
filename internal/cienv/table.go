package cienv

// systems are the systems that are known. One that starts jobs of another comes
// before it.
var systems = []system{
	{
		// A re-run, of all jobs or of those that failed, keeps GITHUB_RUN_ID and
		// counts GITHUB_RUN_ATTEMPT. Legs of a matrix have one GITHUB_JOB. The time
		// of the run is in no variable. Forks of the software have other addresses.
		name: "GitHub Actions", prefix: "github",
		detect: map[string]string{"GITHUB_ACTIONS": "true"},
		run:    [][]string{{"GITHUB_REPOSITORY"}, {"GITHUB_RUN_ID"}},
		step:   [][]string{{"GITHUB_JOB"}},
		commit: []string{"GITHUB_SHA"},
		url:    "{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_ID}",
		noURL:  []string{"GITEA_ACTIONS", "FORGEJO_ACTIONS"},
	},
	{
		// A retried job has another CI_JOB_ID and CI_JOB_STARTED_AT in the same
		// pipeline. A manual job may run long after its pipeline was made.
		name: "GitLab CI", prefix: "gitlab",
		detect:      map[string]string{"GITLAB_CI": "true"},
		run:         [][]string{{"CI_PROJECT_PATH"}, {"CI_PIPELINE_ID"}},
		step:        [][]string{{"CI_JOB_GROUP_NAME", "CI_JOB_NAME"}},
		environment: []string{"CI_ENVIRONMENT_NAME"},
		commit:      []string{"CI_COMMIT_SHA"},
		url:         "{CI_PIPELINE_URL}",
		ts:          "CI_PIPELINE_CREATED_AT", tsForm: rfc3339, waits: "CI_JOB_MANUAL",
	},
	{
		// Deploying a stage again keeps the release and counts
		// RELEASE_ATTEMPTNUMBER. BUILD_BUILDID is the artifact's: releases of one
		// build share it.
		name: "Azure classic releases", prefix: "azure-release",
		detect:      map[string]string{"RELEASE_RELEASEID": ""},
		run:         [][]string{{"SYSTEM_TEAMPROJECT"}, {"RELEASE_RELEASEID"}},
		step:        [][]string{{"RELEASE_ENVIRONMENTNAME"}},
		environment: []string{"RELEASE_ENVIRONMENTNAME"},
		commit:      []string{"BUILD_SOURCEVERSION"},
		url:         "{RELEASE_RELEASEWEBURL}",
	},
	{
		// A stage or job that is run again keeps BUILD_BUILDID and counts
		// SYSTEM_STAGEATTEMPT and SYSTEM_JOBATTEMPT.
		name: "Azure Pipelines", prefix: "azure",
		detect:      map[string]string{"TF_BUILD": "true"},
		run:         [][]string{{"SYSTEM_TEAMPROJECT"}, {"BUILD_BUILDID"}},
		step:        [][]string{{"SYSTEM_STAGENAME"}, {"SYSTEM_PHASENAME", "SYSTEM_JOBNAME"}},
		environment: []string{"ENVIRONMENT_NAME"},
		commit:      []string{"BUILD_SOURCEVERSION"},
		url:         "{SYSTEM_COLLECTIONURI}{SYSTEM_TEAMPROJECT}/_build/results?buildId={BUILD_BUILDID}",
	},
	{
		// A retried job has another BUILDKITE_JOB_ID in the same build; a rebuild is
		// another build.
		name: "Buildkite", prefix: "buildkite",
		detect: map[string]string{"BUILDKITE": "true"},
		run:    [][]string{{"BUILDKITE_BUILD_ID"}},
		step:   [][]string{{"BUILDKITE_STEP_KEY", "BUILDKITE_STEP_ID"}},
		commit: []string{"BUILDKITE_COMMIT"},
		url:    "{BUILDKITE_BUILD_URL}",
	},
	{
		// A rerun is another workflow, with other jobs, in the same pipeline; the
		// workspace keeps the id of the first workflow. The address of a pipeline
		// is in no variable: CIRCLE_BUILD_URL is the job's.
		name: "CircleCI", prefix: "circleci",
		detect: map[string]string{"CIRCLECI": "true"},
		run:    [][]string{{"CIRCLE_PIPELINE_ID", "CIRCLE_WORKFLOW_WORKSPACE_ID"}},
		step:   [][]string{{"CIRCLE_JOB"}},
		commit: []string{"CIRCLE_SHA1"},
	},
	{
		// Failed steps that are run again keep the build's number and count
		// BITBUCKET_STEP_RUN_NUMBER. The step's name is in no variable.
		name: "Bitbucket Pipelines", prefix: "bitbucket",
		detect:      map[string]string{"BITBUCKET_BUILD_NUMBER": ""},
		run:         [][]string{{"BITBUCKET_REPO_FULL_NAME"}, {"BITBUCKET_BUILD_NUMBER"}},
		environment: []string{"BITBUCKET_DEPLOYMENT_ENVIRONMENT"},
		commit:      []string{"BITBUCKET_COMMIT"},
		url:         "https://bitbucket.org/{BITBUCKET_REPO_FULL_NAME}/pipelines/results/{BITBUCKET_BUILD_NUMBER}",
	},
	{
		// A restart keeps the build. Legs of a matrix have one stage.
		name: "Travis CI", prefix: "travis",
		detect: map[string]string{"TRAVIS": "true"},
		run:    [][]string{{"TRAVIS_REPO_SLUG"}, {"TRAVIS_BUILD_ID"}},
		step:   [][]string{{"TRAVIS_BUILD_STAGE_NAME"}},
		commit: []string{"TRAVIS_COMMIT"},
		url:    "{TRAVIS_BUILD_WEB_URL}",
	},
	{
		// Running what is incomplete again keeps the build; a rebuild is another.
		name: "AppVeyor", prefix: "appveyor",
		detect: map[string]string{"APPVEYOR": "true"},
		run:    [][]string{{"APPVEYOR_ACCOUNT_NAME"}, {"APPVEYOR_PROJECT_SLUG"}, {"APPVEYOR_BUILD_ID"}},
		commit: []string{"APPVEYOR_REPO_COMMIT"},
		url:    "{APPVEYOR_URL}/project/{APPVEYOR_ACCOUNT_NAME}/{APPVEYOR_PROJECT_SLUG}/builds/{APPVEYOR_BUILD_ID}",
	},
	{
		// A restart is another build, and so is a promotion.
		name: "Drone", prefix: "drone",
		detect:      map[string]string{"DRONE": "true"},
		run:         [][]string{{"DRONE_REPO"}, {"DRONE_BUILD_NUMBER"}},
		step:        [][]string{{"DRONE_STAGE_NAME"}},
		environment: []string{"DRONE_DEPLOY_TO"},
		commit:      []string{"DRONE_COMMIT_SHA"},
		url:         "{DRONE_BUILD_LINK}",
		ts:          "DRONE_BUILD_CREATED", tsForm: unixSeconds,
	},
	{
		// A restart is another pipeline.
		name: "Woodpecker", prefix: "woodpecker",
		detect:      map[string]string{"CI": "woodpecker"},
		run:         [][]string{{"CI_REPO"}, {"CI_PIPELINE_NUMBER"}},
		step:        [][]string{{"CI_WORKFLOW_NAME"}},
		environment: []string{"CI_PIPELINE_DEPLOY_TARGET"},
		commit:      []string{"CI_COMMIT_SHA"},
		url:         "{CI_PIPELINE_URL}",
		ts:          "CI_PIPELINE_CREATED", tsForm: unixSeconds,
	},
	{
		// retry within a pipeline keeps the build; a rebuild, a replay and a restart
		// from a stage are others. A job that is deleted and made again counts its
		// builds from 1.
		name: "Jenkins", prefix: "jenkins",
		detect: map[string]string{"JENKINS_URL": "", "JENKINS_HOME": ""},
		run:    [][]string{{"JOB_NAME"}, {"BUILD_NUMBER"}},
		step:   [][]string{{"STAGE_NAME"}},
		commit: []string{"GIT_COMMIT"},
		url:    "{BUILD_URL}",
	},
	{
		// A retried build is another build; its commands run once in it.
		name: "AWS CodeBuild", prefix: "codebuild",
		detect: map[string]string{"CODEBUILD_BUILD_ID": ""},
		run:    [][]string{{"CODEBUILD_BUILD_ID"}},
		commit: []string{"CODEBUILD_RESOLVED_SOURCE_VERSION"},
		url:    "{CODEBUILD_BUILD_URL}",
		ts:     "CODEBUILD_START_TIME", tsForm: unixMilliseconds,
	},
}
