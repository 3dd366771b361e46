package record

// The methods below keep the fields that this build does not know (Extra).

type (
	plainState  State
	plainHead   Head
	plainParked Parked
)

// MarshalJSON writes the state, its status from its reasons, its error cut.
func (s State) MarshalJSON() ([]byte, error) {
	s.Status = s.status()
	s.LastError = text(s.LastError, maxErrorText)
	return encodeKeeping(plainState(s), s.Extra)
}

// UnmarshalJSON reads the state as it is written; see ParseState.
func (s *State) UnmarshalJSON(data []byte) error {
	extra, err := decodeKeeping(data, (*plainState)(s))
	s.Extra = extra
	return err
}

// MarshalJSON writes the head.
func (h Head) MarshalJSON() ([]byte, error) { return encodeKeeping(plainHead(h), h.Extra) }

// UnmarshalJSON reads the head.
func (h *Head) UnmarshalJSON(data []byte) (err error) {
	h.Extra, err = decodeKeeping(data, (*plainHead)(h))
	return err
}

// MarshalJSON writes what is parked.
func (p Parked) MarshalJSON() ([]byte, error) { return encodeKeeping(plainParked(p), p.Extra) }

// UnmarshalJSON reads what is parked.
func (p *Parked) UnmarshalJSON(data []byte) (err error) {
	p.Extra, err = decodeKeeping(data, (*plainParked)(p))
	return err
}
