// Package identity decides which entry of a document is which entry of the store.
//
// It owns that decision alone: it knows no database and no feed format, and everything in it is a pure function. A store calls
// KeysOf for the entries that came, looks up which of its entries share a key, and gives both to Match inside the transaction
// that writes the outcome.
//
// Publishers break every single rule of identity: they repeat guids, put headlines into them, flip between http and https or
// between host names, leave guids out, move the whole site. So an entry has many keys, from the most particular to the
// vaguest, and they are tried in that order. A key decides only when it is unique: exactly one entry of the document and exactly
// one of the store have it. The vaguer keys need, besides, a second witness (the same title or the same date). When in doubt two
// entries stay two, for a duplicate is seen and a swallowed entry is not.
//
//	level          what agrees                          and besides
//	GuidURLTitle   guid, URL and title                  -
//	GuidURL        guid and URL                         -
//	Guid           guid                                 -
//	GuidAnyScheme  guid without http/https and www.     -
//	URLTitle       URL and title                        no two guids, or the same date, or the same content
//	URL            URL                                  no two guids, or the same date, or guids made of headlines; not a home page
//	GuidAnyHost    path and query of the guid           same title or same date
//	URLAnyHost     path and query of the URL            same title or same date; no two guids
//	Text           title and content                    neither guid nor URL
//	TitleDate      title and date                       most of the document would be new
//
// "Two guids" are different ones, of which neither is shared by several entries of the document or of the store.
//
// No key is made of now, and none of a date alone.
package identity
