package api

// NewAlert is the body that makes an alert, and that is tried by a preview.
type NewAlert struct {
	Name         string         `json:"name"                    maxLength:"200"                                                                                minLength:"1"`
	Source       AlertSource    `json:"source"`
	Period       string         `json:"period"                  doc:"How long the periods are that are judged one by one. All but days begin at multiples of their length since midnight UTC." enum:"5m,15m,30m,1h,6h,12h,1d"`
	Timezone     *string        `json:"timezone,omitempty"      doc:"An IANA name; where days begin. UTC if absent."`
	Condition    AlertCondition `json:"condition"`
	For          *int64         `json:"for,omitempty"           doc:"How many periods in a row must be bad until it fires; 1 if absent."                   maximum:"100" minimum:"1"`
	ResolveAfter *int64         `json:"resolve_after,omitempty" doc:"How many periods in a row must be good until it is resolved; 1 if absent."            maximum:"100" minimum:"1"`
}

// AlertChange is the body that changes an alert: what is absent stays.
type AlertChange struct {
	Name         *string         `json:"name,omitempty"          maxLength:"200" minLength:"1"`
	Source       *AlertSource    `json:"source,omitempty"        doc:"The whole source."`
	Period       *string         `json:"period,omitempty"        enum:"5m,15m,30m,1h,6h,12h,1d"`
	Timezone     *string         `json:"timezone,omitempty"`
	Condition    *AlertCondition `json:"condition,omitempty"     doc:"The whole condition."`
	For          *int64          `json:"for,omitempty"           maximum:"100"   minimum:"1"`
	ResolveAfter *int64          `json:"resolve_after,omitempty" maximum:"100"   minimum:"1"`
}

// AlertSource is what an alert watches: a trend, or the health of intake.
type AlertSource struct {
	Type    string        `json:"type"              doc:"A trend of events; or of what intake was sent: repeats among accepted items, rejected among all items (both 0 to 1), or the longest wait for the event store in seconds." enum:"trend,duplicate_rate,rejection_rate,lag_seconds"`
	Measure *string       `json:"measure,omitempty" doc:"Of a trend; count if absent."                                     enum:"count,persons"`
	Event   any           `json:"event,omitempty"   doc:"Of a trend: a name, or up to 50 names that count together. Absent: all events."`
	Where   []QueryFilter `json:"where,omitempty"   doc:"Of a trend: filters that must all hold."                          maxItems:"50"`
}

// AlertCondition is the rule by which a period is bad.
type AlertCondition struct {
	Type      string   `json:"type"               doc:"Compare the value with a threshold, or its change with a baseline."                                      enum:"threshold,change"`
	Direction string   `json:"direction"          doc:"above or below for a threshold, up or down for a change."                                                enum:"above,below,up,down"`
	Value     *float64 `json:"value,omitempty"    doc:"Of a threshold: required; a value beyond it is bad, an equal one is not."                             minimum:"0"`
	Percent   *float64 `json:"percent,omitempty"  doc:"Of a change: at least by this much is bad; at most 100 for down."`
	Baseline  *string  `json:"baseline,omitempty" doc:"Of a change: the period before, the mean of the periods before, or the mean of the same time on the days before." enum:"previous_period,mean_of_periods,mean_of_days"`
	Periods   *int64   `json:"periods,omitempty"  doc:"Of a mean: how many periods, or days."                                                                   maximum:"30" minimum:"1"`
	Minimum   *float64 `json:"minimum,omitempty"  doc:"The volume below which a change is never bad and a rate is not known; 10 if absent."                     minimum:"0"`
}

// Alert is an alert and how it stands.
type Alert struct {
	ID             string           `json:"id"              format:"uuid"`
	ProjectID      string           `json:"project_id"      format:"uuid"`
	Name           string           `json:"name"`
	Source         AlertSource      `json:"source"`
	Period         string           `json:"period"          enum:"5m,15m,30m,1h,6h,12h,1d"`
	Timezone       string           `json:"timezone"`
	Condition      AlertCondition   `json:"condition"`
	For            int64            `json:"for"`
	ResolveAfter   int64            `json:"resolve_after"`
	State          string           `json:"state"           enum:"ok,firing"`
	FiringSince    *string          `json:"firing_since"    doc:"The end of the period that made it fire; null if it does not."                              format:"date-time"`
	Problem        *string          `json:"problem"         doc:"Why it is not known how the metric stands; null if it is. It then neither begins to fire nor is resolved." enum:"no_data,no_baseline,query_timeout,query_failed"`
	ProblemSince   *string          `json:"problem_since"   format:"date-time"`
	Muted          bool             `json:"muted"           doc:"While it is muted it is judged and recorded, and nothing is sent."`
	MutedUntil     *string          `json:"muted_until"     doc:"Null if it is muted for ever, or not."                                                      format:"date-time"`
	LastEvaluation *AlertEvaluation `json:"last_evaluation,omitempty" doc:"The period that was judged last; absent before the first."`
	NextPeriod     AlertPeriod      `json:"next_period"     doc:"The period that is judged next."`
	CreatedAt      string           `json:"created_at"      format:"date-time"`
	UpdatedAt      string           `json:"updated_at"      format:"date-time"`
}

// AlertPeriod is a range of time that is judged as a whole.
type AlertPeriod struct {
	Start string `json:"start" format:"date-time"`
	End   string `json:"end"   doc:"The first moment that counts no more." format:"date-time"`
}

// AlertEvaluation is a period that was judged.
type AlertEvaluation struct {
	Period   AlertPeriod `json:"period"`
	Verdict  string      `json:"verdict"  enum:"good,bad,unknown"`
	Problem  *string     `json:"problem"  doc:"Why the verdict is unknown."                                          enum:"no_data,no_baseline,query_timeout,query_failed"`
	Value    *float64    `json:"value"`
	Baseline *float64    `json:"baseline" doc:"What the value was compared with; null for a threshold."`
	Change   *float64    `json:"change"   doc:"In per cent of the baseline; null if there is none, or if it is 0."`
	At       *string     `json:"at"       doc:"When it was judged; null in a preview."                               format:"date-time"`
	State    *string     `json:"state"    doc:"In a preview: the state that it would have led to; else null."        enum:"ok,firing"`
}

// AlertPreview is how an alert would have judged the latest periods, the
// latest first.
type AlertPreview struct {
	Items []AlertEvaluation `json:"items"`
}

// AlertMute is the body that mutes an alert.
type AlertMute struct {
	Until *string `json:"until,omitempty" doc:"When it ends; for ever if absent." format:"date-time"`
}

// AlertRelease is a release marker beside a change.
type AlertRelease struct {
	ID          string  `json:"id"          format:"uuid"`
	Version     string  `json:"version"`
	Environment string  `json:"environment"`
	TS          string  `json:"ts"          format:"date-time"`
	Commit      *string `json:"commit"`
	URL         *string `json:"url"`
}

// AlertEntry tells of one thing that has become of an alert.
type AlertEntry struct {
	ID       string         `json:"id"       format:"uuid"`
	Kind     string         `json:"kind"     enum:"fired,announced,resolved,muted,unmuted,changed,skipped,problem"`
	At       string         `json:"at"       format:"date-time"`
	UserID   *string        `json:"user_id"  doc:"Who did it; null if a period did."                                                     format:"uuid"`
	Reason   *string        `json:"reason"   doc:"Why it was resolved."                                                                  enum:"recovered,by_hand,changed,deleted"`
	Period   *AlertPeriod   `json:"period,omitempty" doc:"Absent if it is not about one."`
	Value    *float64       `json:"value"`
	Baseline *float64       `json:"baseline"`
	Change   *float64       `json:"change"   doc:"In per cent of the baseline."`
	Problem  *string        `json:"problem"  enum:"no_data,no_baseline,query_timeout,query_failed"`
	Until    *string        `json:"until"    doc:"Until when it is muted; null for ever."                                                format:"date-time"`
	Periods  *int64         `json:"periods"  doc:"How many periods were passed over."`
	Muted    bool           `json:"muted"    doc:"It was muted, and nothing was sent."`
	Releases []AlertRelease `json:"releases" doc:"Release markers from a day before the period until its end, the latest first, at most 10."`
}

// AlertAbout names an alert in a message.
type AlertAbout struct {
	ID        string         `json:"id"`
	ProjectID string         `json:"project_id"`
	Name      string         `json:"name"`
	Source    AlertSource    `json:"source"`
	Period    string         `json:"period"`
	Timezone  string         `json:"timezone"`
	Condition AlertCondition `json:"condition"`
}

// AlertFired is the data of alert.fired.
type AlertFired struct {
	Alert       AlertAbout     `json:"alert"`
	Period      AlertPeriod    `json:"period"       doc:"The bad period."`
	Value       *float64       `json:"value"`
	Baseline    *float64       `json:"baseline"`
	Change      *float64       `json:"change"       doc:"In per cent of the baseline."`
	FiringSince string         `json:"firing_since"`
	Releases    []AlertRelease `json:"releases"     doc:"Release markers from a day before the period until its end, the latest first, at most 10."`
}

// AlertResolved is the data of alert.resolved.
type AlertResolved struct {
	Alert          AlertAbout     `json:"alert"`
	Reason         string         `json:"reason"           doc:"recovered, by_hand, changed or deleted."`
	UserID         *string        `json:"user_id"          doc:"Who did it; null if a period did."`
	Period         *AlertPeriod   `json:"period,omitempty" doc:"The good period; absent if there is none."`
	Value          *float64       `json:"value"`
	Baseline       *float64       `json:"baseline"`
	Change         *float64       `json:"change"`
	FiringSince    string         `json:"firing_since"`
	FiredMessageID string         `json:"fired_message_id" doc:"The webhook-id of the alert.fired that this ends."`
	Releases       []AlertRelease `json:"releases"`
}
