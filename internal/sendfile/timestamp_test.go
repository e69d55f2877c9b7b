package sendfile

import (
	"testing"
	"time"
)

func TestFormatTS(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		cell string
		loc  *time.Location
		want string
	}{
		{"2024-03-13T10:21:14Z", berlin, `"2024-03-13T10:21:14Z"`},
		{"2024-03-13t10:21:14z", berlin, `"2024-03-13T10:21:14Z"`},
		{"2024-03-13 10:21:14", time.UTC, `"2024-03-13T10:21:14Z"`},
		{" 2024-03-13 10:21:14.5 ", time.UTC, `"2024-03-13T10:21:14.5Z"`},
		{"2024-03-13 10:21:14,25", time.UTC, `"2024-03-13T10:21:14.25Z"`},
		{"2024-03-13T10:21:14", berlin, `"2024-03-13T09:21:14Z"`},
		{"2024-07-13 10:21:14", berlin, `"2024-07-13T08:21:14Z"`},
		{"2011-10-11 13:45:40.276000+02:00", time.UTC, `"2011-10-11T11:45:40.276Z"`},
		{"2011-12-06 13:41:31.788000+0100", time.UTC, `"2011-12-06T12:41:31.788Z"`},
		{"2011-12-06 13:41:31 -05", time.UTC, `"2011-12-06T18:41:31Z"`},
		{"2011-12-06 13:41:31 +05:30", time.UTC, `"2011-12-06T08:11:31Z"`},
		// 02:30 came twice in the night the clocks went back; the first counts.
		{"2024-10-27 02:30:00", berlin, `"2024-10-27T00:30:00Z"`},
		{"2024-10-27 03:30:00", berlin, `"2024-10-27T02:30:00Z"`},
		// and did not come in the night they went forward.
		{"2024-03-31 02:30:00", berlin, `"2024-03-31T01:30:00Z"`},
		{"2024-03-31 03:30:00", berlin, `"2024-03-31T01:30:00Z"`},
		{"1710325274000", berlin, `1710325274000`},
		{" 1710325274 ", time.UTC, `1710325274`},
		{"-5", time.UTC, `-5`},
		{"0", time.UTC, `0`},
		// Not times: as they are, for the server to reject.
		{"007", time.UTC, `"007"`},
		{"-", time.UTC, `"-"`},
		{"1.7e12", time.UTC, `"1.7e12"`},
		{"2024-03-13", time.UTC, `"2024-03-13"`},
		{"2024-02-30 10:00:00", time.UTC, `"2024-02-30 10:00:00"`},
		{"13/03/2024 10:21", time.UTC, `"13/03/2024 10:21"`},
		{"2024-03-13 10:21:14 Europe/Berlin", time.UTC, `"2024-03-13 10:21:14 Europe/Berlin"`},
		{"0000-01-01T00:00:00+23:00", time.UTC, `"0000-01-01T00:00:00+23:00"`},
		{"soon \"", time.UTC, `"soon \""`},
	} {
		if got := formatTS(c.cell, c.loc); got != c.want {
			t.Errorf("%q in %s: got %s, want %s", c.cell, c.loc, got, c.want)
		}
	}
}
