#!/usr/bin/env bash
# Records the capture pair that ships with this example: real programs (iperf3
# over TCP and UDP, web pages, DNS, ping) talk across a router whose egress
# queue is shaped and sometimes overflows. Both captures are taken in the
# router, so one kernel clock stamps them: ingress.pcap as packets arrive from
# the servers, egress.pcap as they leave the queue towards the clients.
#
#	servers 10.77.1.1 ── [ingress] router [queue, egress] ── 10.77.2.2 clients
#
# Needs root, and Debian's packages iproute2 ethtool tcpdump iperf3 dnsmasq-base
# bind9-dnsutils curl python3 iputils-ping. Everything happens in three network
# namespaces that are removed at the end. Usage: record.sh [DIRECTORY]
set -euo pipefail

out=$(mkdir -p "${1:-$(dirname "$0")/testdata}" && cd "${1:-$(dirname "$0")/testdata}" && pwd)
[ "$(id -u)" = 0 ] || { echo "record.sh: needs root for network namespaces" >&2; exit 1; }
for tool in ip tc ethtool tcpdump iperf3 dnsmasq dig curl python3 ping; do
	command -v $tool >/dev/null || { echo "record.sh: $tool is missing; see the list of packages above" >&2; exit 1; }
done

a=hoplag-servers r=hoplag-router b=hoplag-clients
work=$(mktemp -d)
cleanup() {
	for ns in $a $r $b; do
		ip netns pids $ns 2>/dev/null | xargs -r kill 2>/dev/null || true
	done
	sleep 0.2
	for ns in $a $r $b; do ip netns del $ns 2>/dev/null || true; done
	rm -rf "$work"
}
trap cleanup EXIT
for ns in $a $r $b; do ip netns add $ns; done
at() { ip netns exec "$@"; }

link() { # namespace, device, address, of a new pair's two ends
	ip link add "$2" netns "$1" type veth peer name "$5" netns "$4"
	for end in "$1 $2 $3" "$4 $5 $6"; do
		set -- $end
		at $1 ip addr add $3/24 dev $2
		at $1 ip link set lo up
		at $1 ip link set $2 up
		# Segments and checksums as on a wire, not as offloaded.
		at $1 ethtool -K $2 tso off gso off gro off tx off rx off >/dev/null
	done
}
link $a server0 10.77.1.1 $r ingress0 10.77.1.254
link $b client0 10.77.2.2 $r egress0 10.77.2.254
at $a ip route add default via 10.77.1.254
at $b ip route add default via 10.77.2.254
at $r sysctl -qw net.ipv4.ip_forward=1
at $r tc qdisc add dev egress0 root tbf rate 12mbit burst 3000 limit 120000

# The servers.
head -c 45000 /dev/urandom >"$work/page.bin"
(cd "$work" && exec ip netns exec $a python3 -m http.server --bind 10.77.1.1 8080) >/dev/null 2>&1 &
at $a iperf3 -s -B 10.77.1.1 >/dev/null 2>&1 &
at $a iperf3 -s -B 10.77.1.1 -p 5202 >/dev/null 2>&1 &
at $a dnsmasq -k -u root --no-hosts --no-resolv --port=53 --listen-address=10.77.1.1 --bind-interfaces \
	--address=/example.test/10.77.1.1 >/dev/null 2>&1 &
sleep 1

# The two measurement points: packets from the servers only.
capture() { # device, direction, file
	at $r tcpdump -i "$1" -Q "$2" -s 96 -B 16384 --time-stamp-precision=nano -w "$work/$3" 'ip and src host 10.77.1.1' 2>"$work/$3.log" &
}
capture ingress0 in ingress.pcap
capture egress0 out egress.pcap
sleep 1

# The clients.
for round in 1 2 3; do
	at $b iperf3 -c 10.77.1.1 -R -t 1 -P 2 -w 64K >/dev/null 2>&1 || true
	sleep 1
done &
bulk=$!
at $b iperf3 -c 10.77.1.1 -p 5202 -R -u -b 1M -l 300 -t 5 >/dev/null 2>&1 &
calls=$!
at $b ping -q -i 0.05 -c 100 10.77.1.1 >/dev/null 2>&1 &
pings=$!
for i in $(seq 60); do
	at $b dig +short +tries=1 +time=1 @10.77.1.1 "host$i.example.test" >/dev/null 2>&1 || true
	at $b curl -s --max-time 5 -o /dev/null http://10.77.1.1:8080/page.bin || true
done
wait $bulk $calls $pings || true
sleep 1
for pid in $(ip netns pids $r); do kill -INT "$pid" 2>/dev/null || true; done
wait_gone=50
while [ -n "$(ip netns pids $r)" ] && [ $wait_gone -gt 0 ]; do sleep 0.1; wait_gone=$((wait_gone - 1)); done

for point in ingress egress; do
	gzip -9nc "$work/$point.pcap" >"$out/$point.pcap.gz"
	sed "s/^/$point: /" "$work/$point.pcap.log"
done
at $r tc -s qdisc show dev egress0
ls -l "$out"
