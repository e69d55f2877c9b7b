package cienv_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/cienv"
)

type environment map[string]string

// with returns the variables with others changed; an empty value unsets one.
func (e environment) with(changes environment) environment {
	out := maps.Clone(e)
	maps.Copy(out, changes)
	return out
}

func (e environment) lookup(name string) (string, bool) {
	value, set := e[name]
	return value, set
}

// found is everything that is found in variables.
type found struct{ system, key, environment, commit, url, ts string }

func find(t *testing.T, e environment) found {
	t.Helper()
	run, known := cienv.Find(e.lookup)
	if !known {
		t.Fatalf("no system in %v", e)
	}
	to := run.Environment.Text
	if to == "" {
		to = "production"
	}
	key, err := run.Key(to, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []cienv.Value{key, run.Environment, run.Commit, run.URL, run.TS} {
		if (v.Text == "") != (len(v.From) == 0) {
			t.Errorf("%q comes from %v", v.Text, v.From)
		}
		for _, name := range v.From {
			if e[name] == "" {
				t.Errorf("%q comes from %s, which is not set", v.Text, name)
			}
		}
	}
	return found{run.System, key.Text, run.Environment.Text, run.Commit.Text, run.URL.Text, run.TS.Text}
}

const (
	sha  = "6dcb09b5b57875f334f61aebed695e2e4193db5e"
	sha2 = "a10867b14bb761a232cd80139fbd4c0d33264240"
)

// cases are the variables of a first attempt in each system, and what becomes
// of them on the next attempt of the step and in the next run.
var cases = []struct {
	first environment
	// again is what another attempt changes: everything that is known to.
	again environment
	next  environment
	// staging is what another environment of the same run changes; nil if it is
	// in no variable.
	staging environment
	want    found
}{
	{
		first: environment{
			"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "octo/shop", "GITHUB_RUN_ID": "1658821493", "GITHUB_RUN_NUMBER": "3",
			"GITHUB_RUN_ATTEMPT": "1", "GITHUB_JOB": "deploy", "GITHUB_SHA": sha, "GITHUB_SERVER_URL": "https://github.com",
			"GITHUB_ACTION": "__run", "RUNNER_NAME": "Hosted Agent", "GITHUB_ACTOR": "octocat", "GITHUB_TRIGGERING_ACTOR": "octocat",
		},
		again: environment{"GITHUB_RUN_ATTEMPT": "2", "RUNNER_NAME": "GitHub Actions 7", "GITHUB_TRIGGERING_ACTOR": "hubot"},
		next:  environment{"GITHUB_RUN_ID": "1658821999", "GITHUB_RUN_NUMBER": "4", "GITHUB_SHA": sha2},
		want: found{
			"GitHub Actions", "github:octo/shop:1658821493:deploy:production", "", sha,
			"https://github.com/octo/shop/actions/runs/1658821493", "",
		},
	},
	{
		first: environment{
			"CI": "true", "GITLAB_CI": "true", "CI_PROJECT_PATH": "acme/shop", "CI_PIPELINE_ID": "123456", "CI_JOB_ID": "50", "CI_JOB_NAME": "deploy:prod",
			"CI_JOB_STARTED_AT": "2026-05-01T10:03:11Z", "CI_PIPELINE_CREATED_AT": "2026-05-01T10:00:00Z", "CI_COMMIT_SHA": sha,
			"CI_ENVIRONMENT_NAME": "production", "CI_PIPELINE_URL": "https://gitlab.example.com/acme/shop/-/pipelines/123456",
			"CI_JOB_URL": "https://gitlab.example.com/acme/shop/-/jobs/50",
		},
		again:   environment{"CI_JOB_ID": "51", "CI_JOB_STARTED_AT": "2026-05-01T10:09:00Z", "CI_JOB_URL": "https://gitlab.example.com/acme/shop/-/jobs/51"},
		next:    environment{"CI_PIPELINE_ID": "123460", "CI_PIPELINE_CREATED_AT": "2026-05-02T10:00:00Z", "CI_COMMIT_SHA": sha2},
		staging: environment{"CI_ENVIRONMENT_NAME": "staging"},
		want: found{
			"GitLab CI", "gitlab:acme/shop:123456:deploy%3Aprod:production", "production", sha,
			"https://gitlab.example.com/acme/shop/-/pipelines/123456", "2026-05-01T10:00:00Z",
		},
	},
	{
		first: environment{
			"TF_BUILD": "True", "RELEASE_RELEASEID": "118", "RELEASE_ATTEMPTNUMBER": "1", "RELEASE_ENVIRONMENTNAME": "prod eu", "RELEASE_DEPLOYMENTID": "81",
			"RELEASE_RELEASEWEBURL": "https://dev.azure.com/acme/shop/_release?releaseId=118&_a=release-summary", "SYSTEM_TEAMPROJECT": "shop",
			"BUILD_BUILDID": "4411", "BUILD_SOURCEVERSION": sha, "RELEASE_DEPLOYMENT_STARTTIME": "2026-05-01 10:00:00Z",
		},
		again:   environment{"RELEASE_ATTEMPTNUMBER": "2", "RELEASE_DEPLOYMENTID": "82", "RELEASE_DEPLOYMENT_STARTTIME": "2026-05-01 11:00:00Z"},
		next:    environment{"RELEASE_RELEASEID": "119"},
		staging: environment{"RELEASE_ENVIRONMENTNAME": "staging"},
		want: found{
			"Azure classic releases", "azure-release:shop:118:prod%20eu:prod%20eu", "prod eu", sha,
			"https://dev.azure.com/acme/shop/_release?releaseId=118&_a=release-summary", "",
		},
	},
	{
		first: environment{
			"TF_BUILD": "True", "SYSTEM_TEAMPROJECT": "Web Shop", "BUILD_BUILDID": "4411", "BUILD_BUILDNUMBER": "20260501.1", "SYSTEM_STAGENAME": "release",
			"SYSTEM_PHASENAME": "deploy", "SYSTEM_JOBNAME": "linux", "SYSTEM_STAGEATTEMPT": "1", "SYSTEM_JOBATTEMPT": "1", "SYSTEM_JOBID": "12f1170f-54f2-53f3-20dd-22fc7dff55f9",
			"ENVIRONMENT_NAME": "production", "BUILD_SOURCEVERSION": sha, "SYSTEM_COLLECTIONURI": "https://dev.azure.com/acme/",
		},
		again:   environment{"SYSTEM_STAGEATTEMPT": "2", "SYSTEM_JOBATTEMPT": "2", "SYSTEM_JOBID": "99999999-54f2-53f3-20dd-22fc7dff55f9"},
		next:    environment{"BUILD_BUILDID": "4412", "BUILD_BUILDNUMBER": "20260501.2"},
		staging: environment{"ENVIRONMENT_NAME": "staging"},
		want: found{
			"Azure Pipelines", "azure:Web%20Shop:4411:release:deploy:production", "production", sha,
			"https://dev.azure.com/acme/Web%20Shop/_build/results?buildId=4411", "",
		},
	},
	{
		first: environment{
			"CI": "true", "BUILDKITE": "true", "BUILDKITE_BUILD_ID": "018f3c1e-7a51-4b0e-9d0a-000000000001", "BUILDKITE_BUILD_NUMBER": "77", "BUILDKITE_STEP_ID": "018f3c1e-aaaa",
			"BUILDKITE_STEP_KEY": "deploy", "BUILDKITE_JOB_ID": "j1", "BUILDKITE_RETRY_COUNT": "0", "BUILDKITE_COMMIT": sha,
			"BUILDKITE_BUILD_URL": "https://buildkite.com/acme/shop/builds/77",
		},
		again: environment{"BUILDKITE_JOB_ID": "j2", "BUILDKITE_RETRY_COUNT": "1"},
		next:  environment{"BUILDKITE_BUILD_ID": "018f3c1e-7a51-4b0e-9d0a-000000000002", "BUILDKITE_BUILD_NUMBER": "78"},
		want: found{
			"Buildkite", "buildkite:018f3c1e-7a51-4b0e-9d0a-000000000001:deploy:production", "", sha,
			"https://buildkite.com/acme/shop/builds/77", "",
		},
	},
	{
		first: environment{
			"CI": "true", "CIRCLECI": "true", "CIRCLE_PIPELINE_ID": "5034460f-c7c4-4c43-9457-de07e2029e7b", "CIRCLE_WORKFLOW_ID": "w1", "CIRCLE_WORKFLOW_JOB_ID": "wj1",
			"CIRCLE_WORKFLOW_WORKSPACE_ID": "w1", "CIRCLE_BUILD_NUM": "900", "CIRCLE_BUILD_URL": "https://circleci.com/gh/acme/shop/900", "CIRCLE_JOB": "deploy", "CIRCLE_SHA1": sha,
		},
		again: environment{"CIRCLE_WORKFLOW_ID": "w2", "CIRCLE_WORKFLOW_JOB_ID": "wj2", "CIRCLE_BUILD_NUM": "907", "CIRCLE_BUILD_URL": "https://circleci.com/gh/acme/shop/907"},
		next:  environment{"CIRCLE_PIPELINE_ID": "77777777-c7c4-4c43-9457-de07e2029e7b"},
		want:  found{"CircleCI", "circleci:5034460f-c7c4-4c43-9457-de07e2029e7b:deploy:production", "", sha, "", ""},
	},
	{
		first: environment{
			"CI": "true", "BITBUCKET_BUILD_NUMBER": "77", "BITBUCKET_REPO_FULL_NAME": "acme/shop", "BITBUCKET_STEP_RUN_NUMBER": "1", "BITBUCKET_STEP_UUID": "{s1}",
			"BITBUCKET_DEPLOYMENT_ENVIRONMENT": "production", "BITBUCKET_COMMIT": sha,
		},
		again:   environment{"BITBUCKET_STEP_RUN_NUMBER": "2", "BITBUCKET_STEP_UUID": "{s2}"},
		next:    environment{"BITBUCKET_BUILD_NUMBER": "78"},
		staging: environment{"BITBUCKET_DEPLOYMENT_ENVIRONMENT": "staging"},
		want: found{
			"Bitbucket Pipelines", "bitbucket:acme/shop:77:production", "production", sha,
			"https://bitbucket.org/acme/shop/pipelines/results/77", "",
		},
	},
	{
		first: environment{
			"CI": "true", "TRAVIS": "true", "TRAVIS_REPO_SLUG": "acme/shop", "TRAVIS_BUILD_ID": "261020", "TRAVIS_BUILD_NUMBER": "12", "TRAVIS_JOB_ID": "261021",
			"TRAVIS_BUILD_STAGE_NAME": "Deploy", "TRAVIS_COMMIT": sha, "TRAVIS_BUILD_WEB_URL": "https://app.travis-ci.com/acme/shop/builds/261020",
		},
		again: environment{"TRAVIS_JOB_ID": "261099"},
		next:  environment{"TRAVIS_BUILD_ID": "261030", "TRAVIS_BUILD_NUMBER": "13"},
		want: found{
			"Travis CI", "travis:acme/shop:261020:Deploy:production", "", sha,
			"https://app.travis-ci.com/acme/shop/builds/261020", "",
		},
	},
	{
		first: environment{
			"CI": "True", "APPVEYOR": "True", "APPVEYOR_URL": "https://ci.appveyor.com", "APPVEYOR_ACCOUNT_NAME": "acme", "APPVEYOR_PROJECT_SLUG": "shop", "APPVEYOR_BUILD_ID": "48211",
			"APPVEYOR_BUILD_NUMBER": "7", "APPVEYOR_JOB_ID": "a1b2", "APPVEYOR_REPO_COMMIT": sha, "APPVEYOR_REPO_COMMIT_TIMESTAMP": "2026-05-01T10:00:00.0000000Z",
		},
		again: environment{"APPVEYOR_JOB_ID": "c3d4", "APPVEYOR_RE_RUN_INCOMPLETE": "True"},
		next:  environment{"APPVEYOR_BUILD_ID": "48222"},
		want:  found{"AppVeyor", "appveyor:acme:shop:48211:production", "", sha, "https://ci.appveyor.com/project/acme/shop/builds/48211", ""},
	},
	{
		first: environment{
			"CI": "true", "DRONE": "true", "DRONE_REPO": "acme/shop", "DRONE_BUILD_NUMBER": "9", "DRONE_STAGE_NAME": "default", "DRONE_DEPLOY_TO": "production", "DRONE_BUILD_CREATED": "1777629600",
			"DRONE_BUILD_STARTED": "1777629610", "DRONE_STEP_NAME": "mark", "DRONE_COMMIT_SHA": sha, "DRONE_BUILD_LINK": "https://drone.example.com/acme/shop/9",
		},
		again:   environment{"DRONE_BUILD_STARTED": "1777629999"},
		next:    environment{"DRONE_BUILD_NUMBER": "10", "DRONE_BUILD_CREATED": "1777630000"},
		staging: environment{"DRONE_DEPLOY_TO": "staging"},
		want:    found{"Drone", "drone:acme/shop:9:default:production", "production", sha, "https://drone.example.com/acme/shop/9", "2026-05-01T10:00:00Z"},
	},
	{
		first: environment{
			"CI": "woodpecker", "CI_REPO": "acme/shop", "CI_PIPELINE_NUMBER": "8", "CI_PIPELINE_CREATED": "1777629600", "CI_PIPELINE_STARTED": "1777629603", "CI_WORKFLOW_NAME": "release",
			"CI_PIPELINE_DEPLOY_TARGET": "production", "CI_COMMIT_SHA": sha, "CI_PIPELINE_URL": "https://ci.example.com/repos/7/pipeline/8", "CI_STEP_STARTED": "1777629605",
		},
		again:   environment{"CI_STEP_STARTED": "1777629700", "CI_PIPELINE_STARTED": "1777629650"},
		next:    environment{"CI_PIPELINE_NUMBER": "9", "CI_PIPELINE_CREATED": "1777630000"},
		staging: environment{"CI_PIPELINE_DEPLOY_TARGET": "staging"},
		want:    found{"Woodpecker", "woodpecker:acme/shop:8:release:production", "production", sha, "https://ci.example.com/repos/7/pipeline/8", "2026-05-01T10:00:00Z"},
	},
	{
		first: environment{
			"JENKINS_URL": "https://ci.example.com/", "JENKINS_HOME": "/var/jenkins_home", "JOB_NAME": "shop/release%2F1.4", "BUILD_NUMBER": "42", "BUILD_ID": "42",
			"STAGE_NAME": "Deploy to prod", "EXECUTOR_NUMBER": "1", "NODE_NAME": "a", "GIT_COMMIT": sha, "BUILD_URL": "https://ci.example.com/job/shop/job/release%252F1.4/42/",
		},
		again: environment{"EXECUTOR_NUMBER": "3", "NODE_NAME": "b"},
		next:  environment{"BUILD_NUMBER": "43", "BUILD_ID": "43", "BUILD_URL": "https://ci.example.com/job/shop/job/release%252F1.4/43/"},
		want: found{
			"Jenkins", "jenkins:shop/release%252F1.4:42:Deploy%20to%20prod:production", "", sha,
			"https://ci.example.com/job/shop/job/release%252F1.4/42/", "",
		},
	},
	{
		first: environment{
			"CODEBUILD_BUILD_ID": "shop:b1e6661e-e4f2-4156-9ab9-82a190000001", "CODEBUILD_BUILD_NUMBER": "5", "CODEBUILD_START_TIME": "1777629600123",
			"CODEBUILD_RESOLVED_SOURCE_VERSION": sha, "CODEBUILD_BUILD_URL": "https://eu-west-1.console.aws.amazon.com/codebuild/home?region=eu-west-1#/builds/shop:b1e6661e/view/new",
		},
		again: environment{"CODEBUILD_BUILD_SUCCEEDING": "0"},
		next:  environment{"CODEBUILD_BUILD_ID": "shop:b1e6661e-e4f2-4156-9ab9-82a190000002", "CODEBUILD_START_TIME": "1777639600123"},
		want: found{
			"AWS CodeBuild", "codebuild:shop%3Ab1e6661e-e4f2-4156-9ab9-82a190000001:production", "", sha,
			"https://eu-west-1.console.aws.amazon.com/codebuild/home?region=eu-west-1#/builds/shop:b1e6661e/view/new", "2026-05-01T10:00:00.123Z",
		},
	},
}

// TestAttemptsAndRuns: another attempt finds the very same; the next run and
// another environment find other keys.
func TestAttemptsAndRuns(t *testing.T) {
	t.Parallel()
	var systems, keys []string
	for _, c := range cases {
		first := find(t, c.first)
		if first != c.want {
			t.Errorf("found %+v\n want %+v", first, c.want)
		}
		if again := find(t, c.first.with(c.again)); again != first {
			t.Errorf("%s: another attempt finds %+v\nwant %+v", first.system, again, first)
		}
		systems, keys = append(systems, first.system), append(keys, first.key, find(t, c.first.with(c.next)).key)
		if c.staging != nil {
			keys = append(keys, find(t, c.first.with(c.staging)).key)
		}
	}
	if unique := slices.Compact(slices.Sorted(slices.Values(keys))); len(unique) != len(keys) {
		t.Errorf("some of these are equal: %q", keys)
	}
	if want := cienv.Systems(); !slices.Equal(systems, want) {
		t.Errorf("tested %q, known are %q", systems, want)
	}
	for _, key := range keys {
		demandAllowed(t, key)
	}
}

// demandAllowed demands that a key is one that the server takes.
func demandAllowed(t *testing.T, key string) {
	t.Helper()
	policy := idempotency.ReleaseMarker()
	if _, err := policy.ParseKey(http.Header{"Idempotency-Key": {key}}); err != nil {
		t.Errorf("%q: %v", key, err)
	}
}

// TestNames: the environment and the name are in the key, and so two deploys of
// one run have two.
func TestNames(t *testing.T) {
	t.Parallel()
	run, known := cienv.Find(cases[0].first.lookup)
	if !known {
		t.Fatal("no GitHub")
	}
	for _, c := range []struct{ environment, name, want string }{
		{"production", "", "github:octo/shop:1658821493:deploy:production"},
		{"staging", "", "github:octo/shop:1658821493:deploy:staging"},
		{"production", "web", "github:octo/shop:1658821493:web:production"},
		{"a:b", "c", "github:octo/shop:1658821493:c:a%3Ab"},
		{"b", "c:a", "github:octo/shop:1658821493:c%3Aa:b"},
		{"prod, eu", "é~%", "github:octo/shop:1658821493:%C3%A9%7E%25:prod%2C%20eu"},
	} {
		key, err := run.Key(c.environment, c.name)
		if err != nil || key.Text != c.want {
			t.Errorf("%q %q: %q, %v, want %q", c.environment, c.name, key.Text, err, c.want)
		}
		demandAllowed(t, key.Text)
	}
}

// TestLongKeys: a key that is too long is cut, and what was cut off still
// counts.
func TestLongKeys(t *testing.T) {
	t.Parallel()
	run, _ := cienv.Find(cases[0].first.lookup)
	seen := map[string]bool{}
	for _, environment := range []string{strings.Repeat("e", 100), strings.Repeat("e", 99) + "f", strings.Repeat("é", 100)} {
		key, err := run.Key(environment, "")
		if err != nil || len(key.Text) != 128 || !strings.HasPrefix(key.Text, "github:octo/shop:1658821493:deploy:") || seen[key.Text] {
			t.Errorf("%s: %q, %v", environment, key.Text, err)
		}
		demandAllowed(t, key.Text)
		seen[key.Text] = true
	}
	if key, err := run.Key(strings.Repeat("e", 93), ""); err != nil || len(key.Text) != 128 || strings.Contains(key.Text, "~") {
		t.Errorf("128 characters fit: %q, %v", key.Text, err)
	}
}

// TestNothingIsGuessed: what is missing, or could change between attempts, is
// not made up.
func TestNothingIsGuessed(t *testing.T) {
	t.Parallel()
	for _, e := range []environment{{}, {"CI": "true"}, {"GITHUB_ACTIONS": "false"}, {"BUILD_NUMBER": "7", "JOB_NAME": "x"}} {
		if run, known := cienv.Find(e.lookup); known {
			t.Errorf("%v is taken for %s", e, run.System)
		}
	}
	run, _ := cienv.Find(cases[5].first.with(environment{"CIRCLE_PIPELINE_ID": "", "CIRCLE_WORKFLOW_WORKSPACE_ID": " "}).lookup)
	if key, err := run.Key("production", ""); err == nil || !strings.Contains(err.Error(), "CircleCI, but CIRCLE_PIPELINE_ID or CIRCLE_WORKFLOW_WORKSPACE_ID is not set") {
		t.Errorf("key %q, %v", key.Text, err)
	}
	for name, c := range map[string]struct {
		of      int
		changes environment
		check   func(cienv.Run) cienv.Value
	}{
		"a symbolic commit":        {4, environment{"BUILDKITE_COMMIT": "HEAD"}, func(r cienv.Run) cienv.Value { return r.Commit }},
		"a URL without its server": {0, environment{"GITHUB_SERVER_URL": ""}, func(r cienv.Run) cienv.Value { return r.URL }},
		"a URL of another system":  {0, environment{"GITEA_ACTIONS": "true"}, func(r cienv.Run) cienv.Value { return r.URL }},
		"no URL":                   {11, environment{"BUILD_URL": "none"}, func(r cienv.Run) cienv.Value { return r.URL }},
		"a manual job":             {1, environment{"CI_JOB_MANUAL": "true"}, func(r cienv.Run) cienv.Value { return r.TS }},
		"a time in words":          {1, environment{"CI_PIPELINE_CREATED_AT": "yesterday"}, func(r cienv.Run) cienv.Value { return r.TS }},
		"a time in seconds":        {12, environment{"CODEBUILD_START_TIME": "1777629600"}, func(r cienv.Run) cienv.Value { return r.TS }},
		"half a number":            {9, environment{"DRONE_BUILD_CREATED": "1777629600s"}, func(r cienv.Run) cienv.Value { return r.TS }},
	} {
		run, known := cienv.Find(cases[c.of].first.with(c.changes).lookup)
		if got := c.check(run); !known || got.Text != "" || got.From != nil {
			t.Errorf("%s: found %+v", name, got)
		}
	}
}
