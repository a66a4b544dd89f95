// Package sanitise makes HTML that strangers wrote safe to show, and text of HTML where text is wanted.
//
// It owns the list of what may stay (elements, attributes, schemes, video players), how an address in it becomes absolute, and
// what lazy images, tracker pixels and embeds become. It fetches nothing, stores nothing, and knows no feed format: the caller
// says what an address is relative to.
//
// HTML goes three ways, each for a reason. A pass over the tree that x/net/html makes keeps what the tables in elements.go
// name, so that everything unknown goes. bluemonday, with a policy made of the same tables, goes over the outcome: two
// programs have to be wrong about the same string. Then the whole is done again until nothing changes any more, for mark-up
// that means one thing before and another after it was written down is how sanitisers are fooled; what does not come to rest is
// shown as text.
//
// Everything here is a pure function, safe for concurrent use; it starts nothing.
package sanitise
