package topology

// PartitionFor is the number of a webhook: in every topic its records are in this partition. It is what Kafka's Java client computes for the key,
// so that any producer with the same partitioner (librdkafka: partitioner=murmur2_random) hits the right one.
func (t *Topology) PartitionFor(webhook string) int32 {
	return int32(murmur2([]byte(webhook))&0x7fffffff) % t.cfg.Partitions
}

// murmur2 is org.apache.kafka.common.utils.Utils.murmur2, bit for bit: MurmurHash2 with Kafka's seed, read little endian.
func murmur2(key []byte) uint32 {
	const (
		seed = uint32(0x9747b28c)
		m    = uint32(0x5bd1e995)
		r    = 24
	)
	h := seed ^ uint32(len(key))
	for ; len(key) >= 4; key = key[4:] {
		k := uint32(key[0]) | uint32(key[1])<<8 | uint32(key[2])<<16 | uint32(key[3])<<24
		k *= m
		k ^= k >> r
		k *= m
		h *= m
		h ^= k
	}
	switch len(key) {
	case 3:
		h ^= uint32(key[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(key[1]) << 8
		fallthrough
	case 1:
		h ^= uint32(key[0])
		h *= m
	}
	h ^= h >> 13
	h *= m
	h ^= h >> 15
	return h
}
