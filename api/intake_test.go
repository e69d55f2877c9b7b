package api_test

import (
	"testing"

	"github.com/actionpulse/actionpulse/api"
)

func TestAccountsFor(t *testing.T) {
	t.Parallel()
	rejected := func(places ...int) (list []api.Rejection) {
		for _, i := range places {
			list = append(list, api.Rejection{Index: i})
		}
		return list
	}
	for _, c := range []struct {
		answer api.TrackResponse
		want   bool
	}{
		{api.TrackResponse{Accepted: 3}, true},
		{api.TrackResponse{Accepted: 3, Duplicates: 3}, true},
		{api.TrackResponse{Accepted: 1, Rejected: rejected(0, 2)}, true},
		{api.TrackResponse{Rejected: rejected(2, 1, 0)}, true},
		{api.TrackResponse{}, false},
		{api.TrackResponse{Accepted: 2}, false},
		{api.TrackResponse{Accepted: 4}, false},
		{api.TrackResponse{Accepted: 3, Duplicates: 4}, false},
		{api.TrackResponse{Accepted: 3, Duplicates: -1}, false},
		{api.TrackResponse{Accepted: 3, Rejected: rejected(1)}, false},
		{api.TrackResponse{Accepted: 1, Rejected: rejected(1, 1)}, false},
		{api.TrackResponse{Accepted: 2, Rejected: rejected(3)}, false},
		{api.TrackResponse{Accepted: 2, Rejected: rejected(-1)}, false},
		{api.TrackResponse{Accepted: -1, Rejected: rejected(0, 1, 2)}, false},
	} {
		if got := c.answer.AccountsFor(3); got != c.want {
			t.Errorf("%+v: %t", c.answer, got)
		}
	}
}
