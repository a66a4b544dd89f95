package lock

// EpochKey is the item by which a memcached is known to have lost nothing.
const EpochKey = epochKey

// MaxAside is how many jobs of a queue wait for locks of others.
const MaxAside = maxAside

// ItemName is the name of a lock in memcached.
func ItemName(k Key) string { return lockPrefix + k.hash }
