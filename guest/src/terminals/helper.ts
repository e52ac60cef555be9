// The program beside each terminal: makes the pseudo-terminal, starts the shell or a command in it,
// and carries bytes between it and the daemon. In Perl, which every Debian has and cannot lose, and
// which can make the calls (ioctl) that Node cannot; docs/decisions/terminal.md says why not
// something else. Runs as the tenant's user. When it ends, in whatever way, the kernel hangs up:
// the shell and the programs in the foreground get SIGHUP.

/**
 * Arguments: rows, columns, and a command for /bin/sh; without that it starts the login shell.
 * Input and output: bytes of the terminal. On fd 3 it says `ready` and the shell's process id, or
 * `failed` and why, and waits for `go`, so that who has to look at the shell finds it; at the end
 * `ended`, the exit code and the number of the signal; and reads lines:
 * - `size ROWS COLUMNS`: the programs in the foreground are told.
 * - `signal NUMBER`: to the programs in the foreground.
 * Ends when its input does, or when the shell has, once what was written so far is passed on.
 */
export const TERMINAL_PROGRAM = `
use strict;
use POSIX ();
my ($rows, $columns) = map { $_ + 0 } @ARGV[0, 1];
my $command = $ARGV[2];
# TIOCSPTLCK, TIOCGPTN, TIOCSWINSZ, TIOCSCTTY, TIOCGPGRP, TIOCSIG
my ($unlock, $number_of, $set_size, $control, $group_of, $send) = (0x40045431, 0x80045430, 0x5414, 0x540e, 0x540f, 0x40045436);
my $SOME = 65536;
open(my $daemon, '+<&=', 3) or exit 125;

sub say_daemon { syswrite($daemon, "$_[0]\\n"); }
sub fail { say_daemon("failed $_[0]: $!"); exit 125; }

sysopen(my $master, '/dev/ptmx', POSIX::O_RDWR | POSIX::O_NOCTTY) or fail('/dev/ptmx');
my $locked = pack('i', 0);
ioctl($master, $unlock, $locked) or fail('unlocking the terminal');
my $number = pack('i', 0);
ioctl($master, $number_of, $number) or fail('the number of the terminal');
my $path = '/dev/pts/' . unpack('i', $number);
sysopen(my $slave, $path, POSIX::O_RDWR | POSIX::O_NOCTTY) or fail($path);

sub resize {
  my $size = pack('S4', $_[0], $_[1], 0, 0);
  return ioctl($master, $set_size, $size);
}
resize($rows, $columns) or fail('the size of the terminal');
# IUTF8: the key that erases takes a whole character away.
my $settings = POSIX::Termios->new;
$settings->getattr(fileno $slave) or fail('the settings of the terminal');
$settings->setiflag($settings->getiflag | 0x4000);
$settings->setattr(fileno($slave), POSIX::TCSANOW) or fail('the settings of the terminal');

sub shell {
  my ($shell) = grep { defined $_ && -x $_ && !-d $_ } (getpwuid $<)[8], '/bin/bash', '/bin/sh';
  POSIX::setsid();
  ioctl($slave, $control, 0) or fail('the controlling terminal');
  POSIX::dup2(fileno($slave), $_) for 0, 1, 2;
  # Whatever the shell is, it is to hold nothing but its terminal.
  POSIX::close($_) for 3 .. 63;
  if (defined $command) {
    exec { '/bin/sh' } '/bin/sh', '-c', $command;
    print STDERR "/bin/sh: $!\\n";
    POSIX::_exit(127);
  }
  $ENV{SHELL} = $shell;
  my ($name) = $shell =~ m{([^/]+)$};
  exec { $shell } "-$name";
  print STDERR "$shell: $!\\n";
  POSIX::_exit(127);
}

# Closed by whoever is about to become the shell: it leads its session then.
pipe(my $started, my $starting) or fail('a pipe');
my $pid = fork;
defined $pid or fail('fork');
shell() if $pid == 0;
close $slave;
close $starting;
sysread($started, my $nothing, 1);
close $started;
say_daemon("ready $pid");
sysread($daemon, my $go, 3) or exit 125;
$SIG{PIPE} = 'IGNORE';
# It only ends the wait below.
$SIG{CHLD} = sub {};
for my $handle (\\*STDIN, \\*STDOUT, $master, $daemon) {
  my $flags = fcntl($handle, POSIX::F_GETFL, 0);
  fcntl($handle, POSIX::F_SETFL, $flags | POSIX::O_NONBLOCK);
}

# Of one read or write: whether there is nothing to do but wait.
sub later { $!{EAGAIN} || $!{EINTR} }

sub signal {
  my ($signal) = @_;
  # As the keys do it, whoever the programs belong to; for INT, QUIT and TSTP.
  return if ioctl($master, $send, $signal + 0);
  my $group = pack('i', 0);
  kill(-$signal, unpack('i', $group)) if ioctl($master, $group_of, $group) && unpack('i', $group) > 0;
}

my ($in, $out, $lines, $living, $status) = ('', '', '', 1);
while (1) {
  $status = $? if !defined $status && waitpid($pid, POSIX::WNOHANG) == $pid;
  last if defined $status;
  my ($read, $write) = ('', '');
  vec($read, 0, 1) = 1 if $in eq '';
  vec($read, fileno $daemon, 1) = 1;
  vec($read, fileno $master, 1) = 1 if $living && $out eq '';
  vec($write, 1, 1) = 1 if $out ne '';
  vec($write, fileno $master, 1) = 1 if $in ne '';
  # The child's end may fall between the look for it and this.
  next if select($read, $write, undef, 1) < 0;
  if (vec($read, 0, 1)) {
    my $got = sysread(STDIN, $in, $SOME);
    exit 0 if defined $got ? $got == 0 : !later();
  }
  if (vec($read, fileno $daemon, 1)) {
    my $got = sysread($daemon, $lines, $SOME, length $lines);
    exit 0 if defined $got ? $got == 0 : !later();
    while ($lines =~ s/^([a-z]+) (\\d+)(?: (\\d+))?\\n//) { $1 eq 'size' ? resize($2, $3) : signal($2); }
  }
  if (vec($read, fileno $master, 1)) {
    my $got = sysread($master, $out, $SOME);
    # Nobody has the terminal open any more: the shell is about to end.
    $living = 0 if defined $got ? $got == 0 : !later();
  }
  if (vec($write, fileno $master, 1)) {
    my $put = syswrite($master, $in);
    if (defined $put) { substr($in, 0, $put, ''); } elsif (!later()) { $in = ''; }
  }
  if (vec($write, 1, 1)) {
    my $put = syswrite(STDOUT, $out);
    exit 0 if !defined $put && !later();
    substr($out, 0, $put, '') if defined $put;
  }
}

# What the shell and its programs wrote last; what is left in the background may go on writing for ever.
fcntl(STDOUT, POSIX::F_SETFL, 0);
for (my $passed = 0; $passed < 1048576; $passed += length $out) {
  while ($out ne '') {
    my $put = syswrite(STDOUT, $out);
    exit 0 if !defined $put && !later();
    substr($out, 0, $put, '') if defined $put;
  }
  my $got = sysread($master, $out, $SOME);
  last if !$got;
}
say_daemon(sprintf 'ended %d %d', $status >> 8, $status & 127);
exit 0;
`;
