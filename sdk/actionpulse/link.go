package actionpulse

// link is what the groups of methods share: where the server is and how it is
// spoken to.
type link struct {
	base   string
	key    string
	settings
}

func newLink(server string, options []Option) (*link, error) {
	base, err := serverURL(server)
	if err != nil {
		return nil, err
	}
	l := &link{base: base, settings: settings{agent: userAgent}}
	for _, o := range options {
		o(&l.settings)
	}
	return l, nil
}

// useKey authorises every request by one key.
func (l *link) useKey(key string) error {
	if err := usable(key); err != nil {
		return err
	}
	l.key = key
	return nil
}
