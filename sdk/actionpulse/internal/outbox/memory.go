package outbox

import "sync"

// memory is a queue that ends with the process.
type memory struct {
	o       Options
	mu      sync.Mutex
	records []Record
	bytes   int64
	seq     uint64
	done    uint64
	begun   uint64
	closed  bool
}

// NewMemory returns a queue in memory; of the options it uses the limits.
func NewMemory(o Options) Queue { return &memory{o: o} }

func (m *memory) Append(r Record) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return 0, ErrClosed
	}
	if err := m.o.admit(len(m.records), m.bytes, int64(len(r.Data))); err != nil {
		return 0, err
	}
	m.seq++
	r.Seq = m.seq
	m.records = append(m.records, r)
	m.bytes += int64(len(r.Data))
	return r.Seq, nil
}

func (m *memory) Peek(l Limit) ([]Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Record
	for _, r := range m.records {
		if !l.take(len(r.Data)) {
			break
		}
		out = append(out, r)
	}
	return out, nil
}

func (m *memory) Ack(last Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for ; n < len(m.records) && m.records[n].Seq <= last.Seq; n++ {
		m.bytes -= int64(len(m.records[n].Data))
		m.records[n] = Record{} // its data are free
	}
	m.records, m.done, m.begun = m.records[n:], last.Seq, 0
	return nil
}

func (m *memory) Begin(r Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begun = r.Seq
	return nil
}

func (m *memory) Begun() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.begun
}

func (m *memory) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return State{Records: len(m.records), Bytes: m.bytes, Last: m.seq, Done: m.done}
}

func (m *memory) Sync() error { return nil }

func (m *memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}
