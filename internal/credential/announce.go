package credential

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// announceTimeout limits an announcement: what was changed is committed, and
// its caller waits only to hear whether others know.
const announceTimeout = 5 * time.Second

// Forget drops what is cached, so that changes made by other processes show at
// once. It is for those who hear an announcement.
func (s *Service) Forget() { s.cache.clear() }

// AfterChange is called with the outcome of each change to what credentials
// speak for: keys, sessions, members, organizations. It forgets what is cached
// here, announces the change to other processes, and returns err. When the
// change was made and only the announcement failed, it returns the fault
// unavailable with applied true: others may not know for up to the TTL. It
// announces a change whose outcome is unknown, too. A caller that has left
// meanwhile does not stop the announcement.
func (s *Service) AfterChange(ctx context.Context, err error) error {
	s.Forget()
	if s.announce == nil || err != nil && !fault.MayBeApplied(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), announceTimeout)
	defer cancel()
	failed := s.announce(ctx)
	switch {
	case err != nil:
		return errors.Join(err, failed)
	case failed != nil:
		return fault.Wrap(api.CodeUnavailable, fmt.Errorf("announce a change: %w", failed),
			"the change is made, but other servers may not know of it yet").With("applied", true).After(s.ttl)
	default:
		return nil
	}
}
