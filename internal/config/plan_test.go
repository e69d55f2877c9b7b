package config

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

const threePlans = `{"trial": {"events": 10000, "storage": "1GB", "trial": true}, "free": {"events": 1000000, "storage": 2000000000}, "paid": {}}`

// TestPlans: the same plans from the file, the environment and a flag; none by
// default.
func TestPlans(t *testing.T) {
	none, report, err := parse(t, "--data", t.TempDir())
	if err != nil || len(none.Quota.Plans.All()) != 0 || none.Quota.DefaultPlan != "" {
		t.Errorf("by default: %+v, %v", none, err)
	}
	if text, err := json.Marshal(report[plansName].Value); err != nil || string(text) != "{}" {
		t.Errorf("reported as %s, %v", text, err)
	}
	file := writeFile(t, filepath.Join(t.TempDir(), "c.json"), `{"plans": `+threePlans+`, "default_plan": "free"}`)
	check := func(source string, args ...string) {
		t.Helper()
		c, report, err := parse(t, args...)
		if err != nil {
			t.Fatal(err)
		}
		all := c.Quota.Plans.All()
		trial, free, paid := all["trial"], all["free"], all["paid"]
		if len(all) != 3 || *trial.Events != 10000 || *trial.Storage != 1e9 || !trial.Trial || *free.Events != 1e6 || *free.Storage != 2e9 || free.Trial ||
			paid.Events != nil || paid.Storage != nil || paid.Trial || c.Quota.DefaultPlan != "free" {
			t.Errorf("%s: %+v", source, c.Quota)
		}
		text, err := json.Marshal(report[plansName])
		if err != nil || !strings.Contains(string(text), `"trial":{"events":10000,"storage":1000000000,"trial":true}`) || report[plansName].Source != source {
			t.Errorf("%s is reported as %s, %v", source, text, err)
		}
	}
	check(SourceFile, "--config", file)
	check(SourceFlag, "--plans", threePlans, "--default_plan", "free")
	t.Setenv("ACTIONPULSE_PLANS", threePlans)
	check(SourceEnvironment, "--default_plan", "free")
}

// TestPlansThatAreRefused: a limit that was written but would not hold, or
// would allow nothing, is found at the start.
func TestPlansThatAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.json")
	for content, want := range map[string]string{
		`{"plans": {"free": {"event": 5}}}`:                               `unknown object member name "event"`,
		`{"plans": {"free": null}}`:                                       `"free" must be an object`,
		`{"plans": {"free": 5}}`:                                          "expected an object of plans",
		`{"plans": "free"}`:                                               "expected an object of plans",
		`{"plans": [{}]}`:                                                 "must be a list of strings",
		`{"plans": {"free": {"events": 0}}}`:                              "plans.free.events: must be from 1 to 1000000000000000, not 0; leave it out for no limit",
		`{"plans": {"free": {"events": -1}}}`:                             "plans.free.events: must be from 1",
		`{"plans": {"free": {"events": 1.5}}}`:                            "expected an object of plans",
		`{"plans": {"free": {"events": "many"}}}`:                         "expected an object of plans",
		`{"plans": {"free": {"events": 1e18}}}`:                           "plans.free.events: must be from 1",
		`{"plans": {"free": {"storage": "much"}}}`:                        "expected a size such as 2GB",
		`{"plans": {"free": {"storage": true}}}`:                          "expected a size such as 2GB",
		`{"plans": {"free": {"storage": 0}}}`:                             "plans.free.storage: must be from 1",
		`{"plans": {"": {}}}`:                                             "plans: a name must have 1 to 64 characters",
		`{"plans": {" a": {}}}`:                                           "no space at its ends",
		`{"plans": {"a\nb": {}}}`:                                         "a control character",
		`{"plans": {"` + strings.Repeat("x", 65) + `": {}}}`:              "1 to 64 characters",
		`{"default_plan": "free"}`:                                        `default_plan: "free" is not one of the plans []`,
		`{"default_plan": "fre", "plans": {"free": {}, "paid": {}}}`:      `default_plan: "fre" is not one of the plans ["free" "paid"]`,
		`{"plans": {"free": {}, "free": {}}}`:                             "duplicate object member name",
		`{"plans": {"free": {"events": 1, "storage": 1, "trial": "no"}}}`: "expected an object of plans",
	} {
		writeFile(t, path, content)
		if _, _, err := parse(t, "--config", path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a message with %q", content, err, want)
		}
	}
}
