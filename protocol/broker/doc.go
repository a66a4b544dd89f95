// Package broker opens Redis as a person names it: one server, a set that Sentinel watches, or a Cluster. And it publishes and
// receives in the way that fits.
//
// It owns the forms of an address, the time-outs of the clients that it makes, the choice between plain and sharded channels, and
// the connections on which messages are received. It does not own what is published, nor keys: those are in package task.
//
// In a Cluster, channels with a hash tag, as all channels of a queue have one, are sharded (Redis 7.0): a message goes to the nodes of that
// slot only, not to the whole Cluster. A Cluster that is older has plain channels, and so has everything that is no
// Cluster. Publishers and receivers need not agree beforehand: both do what the node of the slot is able to do.
//
// The manager and the direct client call it. Open connects when the client is first used; a Receiver runs until its context ends.
package broker
