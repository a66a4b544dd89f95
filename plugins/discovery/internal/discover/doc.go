// Package discover is what the program discovery does with a task: an address in, the feeds behind it out.
//
// It owns the order of the steps, the politeness towards the hosts that are asked, and the words of the result. It does not own
// the steps: addresses, pages, channels and ranking are packages beside it, fetching and reading are under plugins/internal. A
// walk through one task:
//
//	know     a feed of the store, or an answer that is still kept, ends the task at once
//	open     fetch the address; if it is a feed, that is the answer. The feeds that a rule for its host names are tried meanwhile
//	look     the feeds that headers, link elements and anchors name
//	guess    the addresses that feeds usually have, in waves, until one is good
//	search   a few pages of the same site that may know more
//	rank     unite twins, put the main feed first
//
// Each step is left out when one before it found a feed that is likely to be meant. Every candidate is fetched and read before
// it is called a feed. A task has a budget of time and of requests; what it found when a budget ran out is its result, and says
// so. A host that answers with a challenge, "too many requests" or "unavailable", or that forbids twice, is not asked again.
//
// A site without feeds is a result with none; an address that gives nothing to look at is a permanent fault. Both are kept for
// a while. Program is called by main and by tests. The goroutines of a task have ended when its handler returns.
package discover
