package sqlstore

// SetStep has f called between the steps of s, with their names.
func (s *Store) SetStep(f func(string)) { s.step = f }

// Texts returns the statements that must use an index, by name.
func (s *Store) Texts() map[string]string {
	return map[string]string{"find": s.sql.find, "strip": s.sql.strip, "forget": s.sql.forget, "count": s.sql.count}
}

// IsUnknown is the default of Options.Unknown.
func IsUnknown(err error) bool { return isUnknown(err) }

// Repeatable says whether the default Write runs a transaction again.
func Repeatable(err error) bool { return repeatable(err) }
