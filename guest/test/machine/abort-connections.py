# Network scene of abort-connections.test.ts: this guest, a host beyond its eth0, and a container
# behind a bridge port, each a network namespace. Opens connections between them, has the helper
# (argv[1], JSON) abort those that leave the guest, and prints the fate of each, as JSON.
import ctypes, errno, json, os, select, socket, subprocess, sys

libc = ctypes.CDLL(None, use_errno=True)
HERE = os.open('/proc/self/ns/net', os.O_RDONLY)


def run(command):
    subprocess.run(command, shell=True, check=True)


def enter(fd):
    if libc.setns(fd, 0x40000000) != 0:
        raise OSError(ctypes.get_errno(), 'setns')


def hidden_namespace():
    """A network namespace that no process is in, as that of another machine."""
    if libc.unshare(0x40000000) != 0:
        raise OSError(ctypes.get_errno(), 'unshare')
    run('ip link set lo up')
    fd = os.open('/proc/self/ns/net', os.O_RDONLY)
    enter(HERE)
    return fd


def namespace():
    """A process that keeps a network namespace, and a handle of that."""
    child = subprocess.Popen(['unshare', '--net', 'sh', '-c', 'ip link set lo up && echo up && exec sleep 600'], stdout=subprocess.PIPE)
    child.stdout.readline()
    return child.pid, os.open(f'/proc/{child.pid}/ns/net', os.O_RDONLY)


def inside(fd, action):
    enter(fd)
    try:
        return action()
    finally:
        enter(HERE)


def listener(family, port):
    server = socket.socket(family)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    server.bind(('::' if family == socket.AF_INET6 else '0.0.0.0', port))
    server.listen(16)
    return server


def connected(address, family=socket.AF_INET, kind=socket.SOCK_STREAM):
    client = socket.socket(family, kind)
    client.settimeout(10)
    client.connect(address)
    return client


def fate(connection):
    # No condition to wait for: aborted connections are readable once the helper has replied.
    readable, _, _ = select.select([connection], [], [], 0)
    if not readable:
        return 'open'
    try:
        connection.settimeout(0)
        return f'read {connection.recv(1)!r}'
    except OSError as error:
        return errno.errorcode[error.errno]


beyond = hidden_namespace()
container_pid, container = namespace()
run('ip link set lo up')
run(f'ip link add eth0 type veth peer name far && ip link set far netns /proc/{os.getpid()}/fd/{beyond}')
run('ip address add 169.254.0.21/30 dev eth0 && ip link set eth0 up && ip route add default via 169.254.0.22')
inside(beyond, lambda: run('ip address add 169.254.0.22/30 dev far && ip link set far up && ip route add default via 169.254.0.21'))
run(f'ip link add docker0 type veth peer name eth0 netns {container_pid}')
run('ip address add 172.17.0.1/24 dev docker0 && ip link set docker0 up && echo 1 > /proc/sys/net/ipv4/ip_forward')
inside(container, lambda: run('ip address add 172.17.0.2/24 dev eth0 && ip link set eth0 up && ip route add default via 172.17.0.1'))

far = inside(beyond, lambda: listener(socket.AF_INET, 7000))
near = listener(socket.AF_INET6, 9000)
contained = inside(container, lambda: listener(socket.AF_INET, 9100))

links = {
    'beyond': connected(('169.254.0.22', 7000)),
    'beyond, IPv6 socket': connected(('::ffff:169.254.0.22', 7000), socket.AF_INET6),
    'beyond, from a container': inside(container, lambda: connected(('169.254.0.22', 7000))),
    'caller': connected(('169.254.0.22', 7000)),
    'loopback': connected(('127.0.0.1', 9000)),
    'loopback, IPv6': connected(('::1', 9000), socket.AF_INET6),
    'loopback, IPv4 in IPv6': connected(('::ffff:127.0.0.1', 9000), socket.AF_INET6),
    'own address': connected(('169.254.0.21', 9000)),
    'to a container': connected(('172.17.0.2', 9100)),
    'loopback of a container': inside(container, lambda: connected(('127.0.0.1', 9100))),
    'connected UDP': connected(('169.254.0.22', 53), kind=socket.SOCK_DGRAM),
}
outer = inside(beyond, lambda: connected(('169.254.0.21', 9000)))
while 'accepted from beyond' not in links:
    accepted, peer = near.accept()
    links['accepted from beyond' if peer[1] == outer.getsockname()[1] else f'accepted {peer}'] = accepted

helper = subprocess.Popen(json.loads(sys.argv[1]), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
answers = []
for _ in range(3):
    helper.stdin.write(f"abort {links['caller'].getsockname()[1]} 7000 169.254.0.22\n")
    helper.stdin.flush()
    answers.append(helper.stdout.readline().strip())
helper.stdin.close()
helper.wait()

result = {name: fate(link) for name, link in links.items() if not name.startswith('accepted (')}
result['answers'] = ' '.join(answers)
probe = connected(('127.0.0.1', 9000))
result['listening'] = 'takes connections' if probe.getpeername()[1] == 9000 else 'does not'
print(json.dumps(result))
