package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-jobs/drover/plugins/internal/feed"
)

// Level says what a key is made of; a smaller one is more particular.
type Level uint8

// The levels, in the order in which they are tried. Their numbers lie in stores: append only.
const (
	GuidURLTitle Level = iota + 1
	GuidURL
	Guid
	GuidAnyScheme
	URLTitle
	URL
	GuidAnyHost
	URLAnyHost
	Text
	TitleDate
	Whole
	levels // how many there are, and one
)

// Key is the level and a hash, as a string that stores keep.
type Key string

// Keys holds the keys of one entry; a level that the entry has no key for is "".
type Keys [levels]Key

// All lists the keys that the entry has.
func (k *Keys) All() []Key {
	var all []Key
	for _, key := range k {
		if key != "" {
			all = append(all, key)
		}
	}
	return all
}

// level reads back what a key is made of.
func (k Key) level() Level {
	head, _, _ := strings.Cut(string(k), ":")
	n, err := strconv.ParseUint(head, 10, 8)
	if err != nil || n >= uint64(levels) {
		return 0
	}
	return Level(n)
}

// lasting is true for a key that outlives an edit of the entry.
func (k Key) lasting() bool {
	return slices.Contains([]Level{GuidURL, Guid, GuidAnyScheme, URL, GuidAnyHost, URLAnyHost}, k.level())
}

// Merge says how the keys that a store keeps with an entry change when the entry comes again. Addresses and guids are kept for
// ever, so that a site may flip between two of them; keys made of text follow the text; the identity stays.
func Merge(old []Key, identity Key, fresh Keys) (add, drop []Key) {
	all := fresh.All()
	for _, key := range all {
		if !slices.Contains(old, key) {
			add = append(add, key)
		}
	}
	for _, key := range old {
		if key != identity && !key.lasting() && !slices.Contains(all, key) {
			drop = append(drop, key)
		}
	}
	return add, drop
}

func makeKey(level Level, parts ...string) Key {
	h := sha256.New()
	for _, part := range parts {
		h.Write([]byte(strconv.Itoa(len(part))))
		h.Write([]byte{':'})
		h.Write([]byte(part))
	}
	return Key(strconv.Itoa(int(level)) + ":" + hex.EncodeToString(h.Sum(nil)[:16]))
}

// KeysOf returns the keys of an entry.
func KeysOf(e *feed.Entry) Keys {
	var k Keys
	hash := e.ContentHash()
	content := string(hash[:])
	guid, address := strings.TrimSpace(e.GUID), addressOf(e)
	title := e.Title
	if title == "" {
		title = content
	}
	page, path := bare(address)
	if guid != "" {
		k[GuidURLTitle] = makeKey(GuidURLTitle, guid, page, title)
		k[GuidURL] = makeKey(GuidURL, guid, page)
		k[Guid] = makeKey(Guid, guid)
		if strings.HasPrefix(guid, "http://") || strings.HasPrefix(guid, "https://") {
			guidPage, guidPath := bare(guid)
			k[GuidAnyScheme] = makeKey(GuidAnyScheme, guidPage)
			if guidPath != "" {
				k[GuidAnyHost] = makeKey(GuidAnyHost, guidPath)
			}
		}
	}
	if page != "" {
		k[URLTitle] = makeKey(URLTitle, page, title)
		if path != "" {
			k[URL] = makeKey(URL, page)
			k[URLAnyHost] = makeKey(URLAnyHost, path)
		}
	}
	k[Text] = makeKey(Text, content)
	if e.Title != "" && !e.Published.IsZero() {
		k[TitleDate] = makeKey(TitleDate, e.Title, strconv.FormatInt(e.Published.Unix(), 10))
	}
	k[Whole] = makeKey(Whole, guid, page, content)
	return k
}

// addressOf is the entry's URL or, for a podcast without pages, that of its first file.
func addressOf(e *feed.Entry) string {
	if e.URL == "" && len(e.Enclosures) > 0 {
		return e.Enclosures[0].URL
	}
	return e.URL
}

// bare returns an address without what flips (scheme, www., default port, a slash at the end, campaign parameters), and its path
// with query and fragment; the path is "" for a home page.
func bare(address string) (page, path string) {
	address = strings.TrimSpace(address)
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return address, address
	}
	query := u.Query()
	for name := range query {
		if strings.HasPrefix(name, "utm_") || name == "fbclid" || name == "gclid" {
			query.Del(name)
		}
	}
	path = strings.TrimSuffix(u.EscapedPath(), "/")
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	if u.Fragment != "" {
		path += "#" + u.Fragment
	}
	host := strings.TrimPrefix(strings.ToLower(u.Host), "www.")
	host = strings.TrimSuffix(strings.TrimSuffix(host, ":80"), ":443")
	return host + path, path
}
