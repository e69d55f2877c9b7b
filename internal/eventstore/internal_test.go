package eventstore

// CopyInStepsOf has [Store.Rewrite] let others write after so many positions.
func (s *Store) CopyInStepsOf(positions int64) { s.copyStep = positions }
