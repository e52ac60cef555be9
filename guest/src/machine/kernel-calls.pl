# Helper process for kernel calls that Node lacks. Perl: perl-base is in every Debian. No modules:
# plain syscall, ioctl and packed structures. Runs in the guest as root.
#
# Arguments: the numbers of clock_settime and setns. All other numbers are the same on every
# architecture that Debian builds Node for. Reads lines and replies to each with `ok` or a reason:
#   clock SECONDS NANOSECONDS ENTROPY_HEX
#     sets the clock, adds to the random pool with credit, reseeds the generator
#   abort LOCAL_PORT REMOTE_PORT REMOTE_ADDRESS
#     aborts every TCP connection that leaves the guest except this one, in the network namespace
#     of every process; pending and later calls on such a connection fail with ECONNABORTED
use strict;
my ($clock_settime, $setns) = map { $_ + 0 } @ARGV;
$| = 1;

sub set_clock {
  my ($seconds, $nanoseconds, $hex) = @_;
  my $bytes = pack('H*', $hex);
  my $pool = pack('i i a*', 8 * length($bytes), length($bytes), $bytes);
  my $time = pack('q q', $seconds, $nanoseconds);
  my $realtime = 0;
  if (syscall($clock_settime, $realtime, $time) != 0) { return "clock_settime: $!"; }
  open(my $random, '>', '/dev/random') or return "/dev/random: $!";
  # RNDADDENTROPY, then RNDRESEEDCRNG: without the second the old key is in use for up to a minute.
  ioctl($random, 0x40085203, $pool) or return "RNDADDENTROPY: $!";
  ioctl($random, 0x5207, 0) or return "RNDRESEEDCRNG: $!";
  return '';
}

# Networks inside the guest, as [address, mask]: routes without a gateway, except the route of the
# interface to the host.
sub inner_networks {
  my ($outer) = @_;
  my @found;
  open(my $routes, '<', '/proc/net/route') or return ();
  while (my $line = <$routes>) {
    my ($interface, $network, $gateway, undef, undef, undef, undef, $mask) = split ' ', $line;
    push @found, [hex $network, hex $mask] if $interface ne $outer && $gateway eq '00000000' && $mask ne '00000000';
  }
  return @found;
}

# Sends one request to the kernel's socket table; calls back with each socket, returns the kernel's
# error number.
sub ask {
  my ($link, $type, $flags, $family, $states, $id, $each) = @_;
  # struct nlmsghdr, struct inet_diag_req_v2 for IPPROTO_TCP
  send($link, pack('L S S L L C C C C L', 72, $type, $flags, 0, 0, $family, 6, 0, 0, $states) . $id, 0) or return $! + 0;
  while (1) {
    defined(recv($link, my $bytes, 65536, 0)) or return $! + 0;
    my $at = 0;
    while ($at + 16 <= length $bytes) {
      my ($size, $kind) = unpack('L S', substr($bytes, $at, 6));
      # NLMSG_ERROR, which is also the acknowledgement, and NLMSG_DONE
      return -unpack('l', substr($bytes, $at + 16, 4)) if $kind == 2;
      return 0 if $kind == 3;
      $each->(substr($bytes, $at + 20, 48));
      $at += ($size + 3) & ~3;
    }
  }
}

# Aborts the connections of the current network namespace; $outer is its interface to the host.
sub abort_here {
  my ($outer, $keep) = @_;
  my @inner = inner_networks($outer);
  # AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG
  socket(my $link, 16, 3, 4) or return "socket table: $!";
  for my $family (2, 10) {
    my @leaving;
    my $failed = ask($link, 20, 0x301, $family, 0x1b3e, "\0" x 48, sub {
      # struct inet_diag_sockid: ports and addresses in network order
      my ($id) = @_;
      my ($from, $to) = (substr($id, 4, 16), substr($id, 20, 16));
      return if $from eq $to;
      my $mapped = "\0" x 10 . "\xff\xff";
      my $v4 = $family == 2 ? substr($to, 0, 4) : substr($to, 0, 12) eq $mapped ? substr($to, 12, 4) : undef;
      if (defined $v4) {
        return if ord($v4) == 127 || substr($id, 0, 4) . $v4 eq $keep;
        my $number = unpack('L', $v4);
        for my $network (@inner) { return if ($number & $network->[1]) == $network->[0]; }
      }
      push @leaving, $id;
    });
    if ($failed) { $! = $failed; return "list of connections: $!"; }
    for my $id (@leaving) {
      # SOCK_DESTROY, acknowledged. ENOENT: the connection closed meanwhile.
      $failed = ask($link, 21, 0x5, $family, 0, $id, sub {});
      if ($failed && $failed != 2) { $! = $failed; return "aborting a connection: $!"; }
    }
  }
  return '';
}

sub abort_everywhere {
  my ($local_port, $remote_port, $address) = @_;
  my $keep = pack('n n C4', $local_port, $remote_port, split(/[.]/, $address));
  my $failure = abort_here('eth0', $keep);
  my $own = '/proc/self/ns/net';
  my %seen = (readlink($own) => 1);
  opendir(my $processes, '/proc') or return "/proc: $!";
  for my $pid (grep { /^[0-9]/ } readdir $processes) {
    my $name = readlink("/proc/$pid/ns/net");
    next if !defined $name || $seen{$name}++;
    open(my $home, '<', $own) or return "$own: $!";
    # The process may have exited meanwhile.
    open(my $there, '<', "/proc/$pid/ns/net") or next;
    if (syscall($setns, fileno($there), 0x40000000) != 0) { return "setns: $!"; }
    $failure ||= abort_here('', '');
    if (syscall($setns, fileno($home), 0x40000000) != 0) { print "setns back: $!\n"; exit 1; }
  }
  return $failure;
}

while (my $line = <STDIN>) {
  my ($what, @values) = split ' ', $line;
  my $failure = $what eq 'clock' ? set_clock(@values) : $what eq 'abort' ? abort_everywhere(@values) : "what is $what?";
  print $failure eq '' ? 'ok' : $failure, "\n";
}
