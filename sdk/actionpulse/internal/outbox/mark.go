package outbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// mark is how far a queue was worked off. It is kept in two slots that are
// written in turn, each with a checksum, so that a write that is cut short
// leaves the other.
type mark struct {
	file  File
	sync  Sync
	turn  uint64
	done  uint64
	begun uint64
	// damaged says that neither slot could be read.
	damaged bool
}

const slotSize = 32

// openMark reads the mark of a queue, or makes it.
func openMark(f FS, path string, s Sync) (*mark, error) {
	file, err := f.OpenFile(path)
	if err != nil {
		return nil, err
	}
	m := &mark{file: file, sync: s}
	if err := m.read(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return m, nil
}

func (m *mark) read() error {
	var slots [2 * slotSize]byte
	n, err := m.file.ReadAt(slots[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the mark: %w", err)
	}
	if n == 0 {
		return m.make()
	}
	m.damaged = true
	for _, slot := range [][]byte{slots[:slotSize], slots[slotSize:]} {
		turn := binary.LittleEndian.Uint64(slot)
		if binary.LittleEndian.Uint32(slot[24:]) != crc32.Checksum(slot[:24], castagnoli) || turn == 0 {
			continue
		}
		if turn > m.turn {
			m.turn = turn
			m.done, m.begun = binary.LittleEndian.Uint64(slot[8:]), binary.LittleEndian.Uint64(slot[16:])
		}
		m.damaged = false
	}
	return nil
}

// make writes both slots, so that the disk has room for them ever after.
func (m *mark) make() error {
	return errors.Join(m.write(), m.write())
}

// set moves the mark, and returns once that is on disk. On an error the mark
// has moved in memory only.
func (m *mark) set(done, begun uint64) error {
	m.done, m.begun = done, begun
	return m.write()
}

// write writes the slot whose turn it is. One that could not be written keeps
// its turn: the other holds what was true before.
func (m *mark) write() error {
	turn := m.turn + 1
	slot := binary.LittleEndian.AppendUint64(nil, turn)
	slot = binary.LittleEndian.AppendUint64(slot, m.done)
	slot = binary.LittleEndian.AppendUint64(slot, m.begun)
	slot = binary.LittleEndian.AppendUint32(slot, crc32.Checksum(slot, castagnoli))
	slot = append(slot, make([]byte, slotSize-len(slot))...)
	if _, err := m.file.WriteAt(slot, int64(turn%2)*slotSize); err != nil {
		return fmt.Errorf("write the mark: %w", err)
	}
	if m.sync == SyncAlways {
		if err := m.file.Sync(); err != nil {
			return fmt.Errorf("write the mark: %w", err)
		}
	}
	m.turn = turn
	return nil
}
