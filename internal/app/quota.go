package app

import (
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/quota"
)

// plansOf are the plans of the settings.
func plansOf(c config.Quota) quota.Plans {
	var all []quota.Plan
	for name, p := range c.Plans.All() {
		plan := quota.Plan{Name: name, Trial: p.Trial}
		if p.Events != nil {
			plan.Events = *p.Events
		}
		if p.Storage != nil {
			plan.Storage = int64(*p.Storage)
		}
		all = append(all, plan)
	}
	return quota.NewPlans(all, c.DefaultPlan)
}
