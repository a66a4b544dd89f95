// Package address makes http and https addresses of what people type and of what pages contain, and spells each in one way.
//
// It owns the reading of addresses as browsers read them (WHATWG URL standard, where net/url is stricter: backslashes, line
// breaks, spaces, stray percent signs, "http:/path", numbers for IPv4 addresses, names in Unicode) and the keys by which two
// spellings are known to be one. It does not decide what may be fetched: that is the guard's business, at dial time. Its
// functions are pure; callers are the other packages of the worker.
package address

import (
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	"github.com/drover-jobs/drover/protocol/fault"
)

// MaxLength is how many bytes an address may have.
const MaxLength = 4096

var (
	schemePattern = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9+.-]*):`)
	portPattern   = regexp.MustCompile(`^[^/?#:@]+:\d{1,5}(?:[/?#]|$)`)
	handlePattern = regexp.MustCompile(`^(?:acct:)?@?([\w.-]+)@((?:[\w-]+\.)+[\w-]+)$`)
)

// wrappers are schemes that stand before an address, or in place of http, to make a program open it.
func wrappers() []string {
	return []string{"feed", "feeds", "rss", "view-source", "itpc", "pcast", "podcast", "url"}
}

// Input reads what a person typed or pasted and returns what it may mean, the likeliest first: an address without a scheme is
// tried with https, then with http. The error is a permanent *fault.Fault: InvalidPayload for what is no address, Refused for
// a scheme that is not fetched.
func Input(text string) ([]*url.URL, error) {
	given := strings.Trim(text, " \t\r\n\"'<>\u200b\ufeff")
	if len(given) > MaxLength {
		return nil, fault.New(fault.InvalidPayload, "the address has more than %d bytes", MaxLength).AsPermanent()
	}
	rest := clean(given)
	if m := handlePattern.FindStringSubmatch(rest); m != nil && (strings.HasPrefix(rest, "@") || strings.HasPrefix(rest, "acct:")) {
		rest = "https://" + m[2] + "/@" + m[1] // a name in the fediverse
	}
	rest = unwrap(rest)
	schemes := []string{"https", "http"}
	if m := schemePattern.FindStringSubmatch(rest); m != nil && !portPattern.MatchString(rest) {
		scheme := strings.ToLower(m[1])
		if scheme != "http" && scheme != "https" {
			return nil, fault.New(fault.Refused, "%q: only http and https are fetched, not %q", given, scheme).AsPermanent()
		}
		schemes, rest = []string{scheme}, rest[len(m[0]):]
	}
	rest = strings.TrimLeft(rest, "/")
	var out []*url.URL
	for _, scheme := range schemes {
		if u, ok := normal(scheme + "://" + rest); ok && (len(schemes) == 1 || namesHost(u)) {
			out = append(out, u)
		}
	}
	if len(out) == 0 {
		return nil, fault.New(fault.InvalidPayload, "%q is not an address: write it like example.com or https://example.com/blog", given).AsPermanent()
	}
	return out, nil
}

// namesHost tells a host from a word when no scheme says that it is one.
func namesHost(u *url.URL) bool {
	return strings.Contains(strings.Trim(u.Hostname(), "."), ".") || u.Port() != "" || u.Hostname() == "localhost" || strings.Contains(u.Hostname(), ":")
}

// Resolve makes an address of what stands in a page whose base is base. It answers false for what is no http or https address
// and for an empty reference, which is the page itself.
func Resolve(base *url.URL, ref string) (*url.URL, bool) {
	ref = unwrap(clean(ref))
	if ref == "" || len(ref) > MaxLength || strings.HasPrefix(ref, "#") {
		return nil, false
	}
	if m := schemePattern.FindStringSubmatch(ref); m != nil {
		scheme, rest := strings.ToLower(m[1]), ref[len(m[0]):]
		switch {
		case scheme != "http" && scheme != "https":
			return nil, false
		case strings.HasPrefix(rest, "//") || startsWithHost(base, rest):
			return normal(scheme + "://" + strings.TrimLeft(rest, "/"))
		}
		ref = rest // "http:/path" and "http:file" have no host: it is the page's
	}
	u, err := base.Parse(ref)
	if err != nil {
		return nil, false
	}
	return normal(u.String())
}

// startsWithHost is true for "/example.com/feed" in a page of example.com, where a slash was lost.
func startsWithHost(base *url.URL, rest string) bool {
	host, _, _ := strings.Cut(strings.TrimLeft(rest, "/"), "/")
	return strings.Contains(host, ".") && strings.EqualFold(host, base.Host)
}

// clean removes what a browser removes from an address and turns backslashes, as it does.
func clean(ref string) string {
	ref = strings.TrimFunc(ref, func(r rune) bool { return r <= ' ' })
	ref = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, ref)
	end := strings.IndexAny(ref, "?#")
	if end < 0 {
		end = len(ref)
	}
	return escapeStray(strings.ReplaceAll(ref[:end], `\`, "/") + ref[end:])
}

// escapeStray escapes the percent signs that begin no escape.
func escapeStray(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	var b strings.Builder
	for i := range len(text) {
		b.WriteByte(text[i])
		if text[i] == '%' && (i+2 >= len(text) || !isHex(text[i+1]) || !isHex(text[i+2])) {
			b.WriteString("25")
		}
	}
	return b.String()
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// unwrap takes off the schemes that only name a program; "feed://host" becomes "http://host".
func unwrap(ref string) string {
	for range 3 {
		m := schemePattern.FindStringSubmatch(ref)
		if m == nil || portPattern.MatchString(ref) {
			return ref
		}
		known := false
		for _, name := range wrappers() {
			known = known || strings.EqualFold(m[1], name)
		}
		if !known {
			return ref
		}
		ref = ref[len(m[0]):]
		if inner := strings.TrimPrefix(ref, "//"); inner != ref {
			ref = inner
			if !schemePattern.MatchString(ref) || portPattern.MatchString(ref) {
				ref = "http://" + ref
			}
		}
	}
	return ref
}

// normal parses an absolute address and spells it in the one way.
func normal(text string) (*url.URL, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" {
		return nil, false
	}
	u.Scheme = strings.ToLower(u.Scheme)
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, false
	}
	host, ok := normalHost(u.Hostname())
	if !ok {
		return nil, false
	}
	port := u.Port()
	if n, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || n == 0) {
		return nil, false
	}
	if u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443" {
		port = ""
	}
	switch {
	case port != "":
		u.Host = net.JoinHostPort(host, port)
	case strings.Contains(host, ":"):
		u.Host = "[" + host + "]"
	default:
		u.Host = host
	}
	u.Fragment, u.RawFragment, u.ForceQuery = "", "", false
	if u.Path == "" {
		u.Path = "/"
	}
	u = u.JoinPath() // takes out dot segments
	if len(u.String()) > MaxLength {
		return nil, false
	}
	return u, true
}

// normalHost spells a host in lower case and ASCII, and an IPv4 address in whatever numbers as four decimal ones.
func normalHost(host string) (string, bool) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.String(), addr.Zone() == ""
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		host = ascii
	}
	if host == "" || strings.Contains("."+host, "..") || strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`%<>^|"'`+"`{}/\\:@?#[],;", r) }) {
		return "", false
	}
	if !endsInNumber(host) {
		return host, true
	}
	addr, ok := parseIPv4(host)
	return addr, ok
}

// endsInNumber is the test of the WHATWG URL standard for a host that is meant as an IPv4 address.
func endsInNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if last == "" {
		return false
	}
	if strings.Trim(last, "0123456789") == "" {
		return true
	}
	_, ok := number(last)
	return ok
}

// parseIPv4 reads decimal, octal and hexadecimal numbers, one to four of them; the last fills what is left.
func parseIPv4(host string) (string, bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return "", false
	}
	var value uint64
	for i, part := range parts {
		n, ok := number(part)
		last := i == len(parts)-1
		if !ok || !last && n > 255 || last && n >= 1<<(8*(5-len(parts))) {
			return "", false
		}
		if last {
			value = value<<(8*(5-len(parts))) | n
		} else {
			value = value<<8 | n
		}
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}).String(), true //nolint:gosec // four bytes
}

func number(text string) (uint64, bool) {
	base := 10
	switch {
	case len(text) > 1 && (strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "0X")):
		base, text = 16, text[2:]
		if text == "" {
			return 0, true
		}
	case len(text) > 1 && text[0] == '0':
		base, text = 8, text[1:]
	}
	n, err := strconv.ParseUint(text, base, 33)
	return n, err == nil
}

// Key is equal for two addresses that in all likelihood lead to the same document: it leaves out the scheme, "www.", a slash at
// the end, the order of the query and what campaigns add to it.
func Key(u *url.URL) string {
	query := u.Query()
	for name := range query {
		if strings.HasPrefix(name, "utm_") || name == "fbclid" || name == "gclid" {
			query.Del(name)
		}
	}
	key := strings.TrimPrefix(u.Host, "www.") + strings.TrimRight((&url.URL{Path: u.Path}).EscapedPath(), "/")
	if len(query) > 0 {
		key += "?" + query.Encode()
	}
	return key
}

// Site is the part of a host name that one owner has registered, such as "example.co.uk"; an address is its own site, and so is
// each port of it.
func Site(u *url.URL) string {
	host := u.Hostname()
	if _, err := netip.ParseAddr(host); err == nil {
		return u.Host
	}
	if site, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return site
	}
	return host
}
