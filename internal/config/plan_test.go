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
