# Helper process of one terminal: makes the pseudo-terminal, starts the shell or a command in it, and
# copies bytes between it and the daemon. Perl: every Debian has it, and it can call ioctl, which
# Node cannot (docs/decisions/terminal.md). Runs as the tenant's user. However it exits, the kernel
# hangs up: the shell and the foreground programs get SIGHUP.
#
# Arguments: rows, columns, and a command for /bin/sh; without a command it starts the login shell.
# stdin and stdout carry the bytes of the terminal. fd 3 carries lines:
#   to the daemon:   `ready PID` or `failed REASON`; at the end `ended EXIT_CODE SIGNAL_NUMBER`
#   from the daemon: `go`, awaited after `ready` so that the daemon can inspect the shell first;
#                    `size ROWS COLUMNS`; `signal NUMBER`, for the foreground programs
# Exits when stdin closes, or after the shell has exited and its output is copied.
use strict;
use POSIX ();
my ($rows, $columns) = map { $_ + 0 } @ARGV[0, 1];
my $command = $ARGV[2];
# TIOCSPTLCK, TIOCGPTN, TIOCSWINSZ, TIOCSCTTY, TIOCGPGRP, TIOCSIG
my ($unlock, $number_of, $set_size, $control, $group_of, $send) =
  (0x40045431, 0x80045430, 0x5414, 0x540e, 0x540f, 0x40045436);
my $SOME = 65536;
open(my $daemon, '+<&=', 3) or exit 125;

sub say_daemon { syswrite($daemon, "$_[0]\n"); }
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
# IUTF8: the erase key deletes a whole character.
my $settings = POSIX::Termios->new;
$settings->getattr(fileno $slave) or fail('the settings of the terminal');
$settings->setiflag($settings->getiflag | 0x4000);
$settings->setattr(fileno($slave), POSIX::TCSANOW) or fail('the settings of the terminal');

sub shell {
  my ($shell) = grep { defined $_ && -x $_ && !-d $_ } (getpwuid $<)[8], '/bin/bash', '/bin/sh';
  POSIX::setsid();
  ioctl($slave, $control, 0) or fail('the controlling terminal');
  POSIX::dup2(fileno($slave), $_) for 0, 1, 2;
  # The shell inherits nothing but its terminal.
  POSIX::close($_) for 3 .. 63;
  if (defined $command) {
    { exec { '/bin/sh' } '/bin/sh', '-c', $command; }
    print STDERR "/bin/sh: $!\n";
    POSIX::_exit(127);
  }
  $ENV{SHELL} = $shell;
  my ($name) = $shell =~ m{([^/]+)$};
  { exec { $shell } "-$name"; }
  print STDERR "$shell: $!\n";
  POSIX::_exit(127);
}

# Closed by the exec of the shell, which leads its session by then.
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
# Only interrupts the select below.
$SIG{CHLD} = sub {};
for my $handle (\*STDIN, \*STDOUT, $master, $daemon) {
  my $flags = fcntl($handle, POSIX::F_GETFL, 0);
  fcntl($handle, POSIX::F_SETFL, $flags | POSIX::O_NONBLOCK);
}

# True when a read or write must be retried later.
sub later { $!{EAGAIN} || $!{EINTR} }

sub signal {
  my ($signal) = @_;
  # TIOCSIG signals as the keys do, whatever user the programs run as; for INT, QUIT and TSTP.
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
  # SIGCHLD may arrive between waitpid and select; the timeout covers that.
  next if select($read, $write, undef, 1) < 0;
  if (vec($read, 0, 1)) {
    my $got = sysread(STDIN, $in, $SOME);
    exit 0 if defined $got ? $got == 0 : !later();
  }
  if (vec($read, fileno $daemon, 1)) {
    my $got = sysread($daemon, $lines, $SOME, length $lines);
    exit 0 if defined $got ? $got == 0 : !later();
    while ($lines =~ s/^([a-z]+) (\d+)(?: (\d+))?\n//) { $1 eq 'size' ? resize($2, $3) : signal($2); }
  }
  if (vec($read, fileno $master, 1)) {
    my $got = sysread($master, $out, $SOME);
    # The last descriptor of the terminal is closed: the shell is about to exit.
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

# Remaining output, up to 1 MiB: background programs may keep writing for ever.
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
