// The program of the helper process for file calls. It forks for each call, and the child becomes
// the tenant before it looks at anything: the kernel decides what it may do, a call that hangs (a
// dead network file system) hangs alone, and its end frees all it held. Perl for the reasons in
// kernel-helper.ts; a fork of it costs an emulated machine 10 ms, a start 70.
import { constants } from 'node:fs';
import { WRITE_PROGRAM } from './program-write.ts';

const O_PATH = 0o10000000;

/** Numbers of system calls, which differ between machines, in the order the program takes them. */
const CALL_NUMBERS: Readonly<
  Record<
    string,
    readonly [fsync: number, fallocate: number, linkat: number, setgroups: number, setresgid: number, setresuid: number]
  >
> = {
  x64: [74, 285, 265, 116, 119, 117],
  arm64: [82, 47, 37, 159, 149, 147],
};

export interface FileProgramOptions {
  /** Path of the socket that it listens on. */
  socket: string;
  uid: number;
  gid: number;
  /** A child that has not ended by then is ended by its own alarm. */
  seconds: number;
  /**
   * Flag of files without a name; another value than the kernel's makes every new content a file
   * with a temporary name first.
   */
  tmpfile?: number;
}

/** Arguments of {@link FILE_PROGRAM}. */
export function fileProgramArguments({ socket, uid, gid, seconds, tmpfile }: FileProgramOptions): string[] {
  const numbers = CALL_NUMBERS[process.arch];
  if (numbers === undefined) throw new Error(`the numbers of the system calls on ${process.arch} are not known`);

  const { O_DIRECTORY, O_NOFOLLOW, O_NOCTTY, O_NONBLOCK } = constants;
  const flags = [O_PATH, O_DIRECTORY, O_NOFOLLOW, O_NOCTTY | O_NONBLOCK, tmpfile ?? 0o20000000 | O_DIRECTORY];
  return [socket, ...[uid, gid, seconds, ...flags, ...numbers].map(String)];
}

/**
 * Says `ready`, then serves its socket until its stdin is closed. A call is eight hex digits, so
 * many bytes of fields joined by NUL, and the content of a write:
 * - `read` PATH MOST_BYTES: answers `ok LENGTH`, a line feed and the content.
 * - `write` PATH LENGTH, then the content: answers `ok LENGTH`. Nothing is touched before all of it
 * is there.
 * - `list` PATH DEPTH MOST_ENTRIES MOST_BYTES MOST_SECONDS: answers `ok`, a line feed and a listing
 * (protocol/src/files.ts).
 *
 * A refusal is a line `no` with the kernel's error number, or `directory`, `special`, `large`.
 */
export const FILE_PROGRAM = `
use strict;
my $listen_at = shift @ARGV;
my ($uid, $gid, $seconds, $o_path, $o_directory, $o_nofollow, $o_gently, $o_tmpfile,
  $fsync, $fallocate, $linkat, $setgroups, $setresgid, $setresuid) = map { $_ + 0 } @ARGV;
my ($o_rdonly, $o_wronly, $o_creat_excl) = (0, 1, 0300);
my ($EPERM, $ENOENT, $EACCES, $EBUSY, $EEXIST, $EXDEV, $EISDIR, $EINVAL, $ETXTBSY, $EFBIG, $ENOSPC, $ELOOP, $EOPNOTSUPP, $EDQUOT) =
  (1, 2, 13, 16, 17, 18, 21, 22, 26, 27, 28, 40, 95, 122);
my $piece = 262144;
my $peer;
umask 022;

sub say_all {
  for (my $at = 0; $at < length $_[0];) {
    my $sent = syswrite($peer, $_[0], length($_[0]) - $at, $at);
    exit 1 unless $sent;
    $at += $sent;
  }
}

sub refuse {
  my ($why) = @_;
  say_all("no $why\\n");
  exit 0;
}

sub take {
  my ($count) = @_;
  my $bytes = '';
  while (length $bytes < $count) {
    my $got = sysread($peer, $bytes, $count - length $bytes, length $bytes);
    exit 1 unless $got;
  }
  return $bytes;
}

# For good. Its supplementary groups go as well, as those of a command do.
sub become_tenant {
  return if $> == $uid && $< == $uid;
  syscall($setgroups, 0, 0) == 0 && syscall($setresgid, $gid, $gid, $gid) == 0 && syscall($setresuid, $uid, $uid, $uid) == 0 or exit 1;
  exit 1 if $> != $uid || $< != $uid;
}

# A regular file, and its stat. Nothing else is ever opened: what the path leads to is held and looked at first, and what is opened is what was looked at.
# Without the file when opening it failed with the error that is given.
sub open_regular {
  my ($path, $flags, $links, $bearable) = @_;
  sysopen(my $seen, $path, $o_path | $links) or refuse($! + 0);
  my @stat = stat $seen;
  my $type = $stat[2] & 0170000;
  refuse('directory') if $type == 0040000;
  refuse('special') if $type != 0100000;
  my $opened = sysopen(my $file, '/proc/self/fd/' . fileno($seen), $flags | $o_gently);
  refuse($! + 0) unless $opened || $! == $bearable;
  return ($opened ? $file : undef, @stat);
}

sub read_file {
  my ($path, $most) = @_;
  my ($file, @stat) = open_regular($path, $o_rdonly, 0, 0);
  my $size = $stat[7];
  refuse('large') if $size > $most;
  # A file that says it is empty may be one that the kernel makes up as it is read.
  my $wanted = $size || $most + 1;
  my $content = '';
  while (length $content < $wanted) {
    my $left = $wanted - length $content;
    my $got = sysread($file, $content, $left < $piece ? $left : $piece, length $content);
    refuse($! + 0) unless defined $got;
    last if $got == 0;
  }
  refuse('large') if length $content > $most;
  say_all('ok ' . length($content) . "\\n");
  say_all($content);
}

sub list {
  my ($root, $depth, $most_entries, $most_bytes, $most_seconds) = @_;
  my $until = time + $most_seconds;
  my ($out, $entries, $bytes, $cut) = ("ok\\n", 0, 0, 0);
  my @level = ('');
  $root = '' if $root eq '/';
  DEPTH: for (1 .. $depth) {
    my @below;
    for my $path (@level) {
      my $given = $path eq '';
      my ($folder, $names);
      my $flags = $o_directory | $o_gently | ($given ? 0 : $o_nofollow);
      # Entered by what was opened, so that no name is looked up twice.
      unless (sysopen($folder, $given && $root eq '' ? '/' : $root . $path, $flags) && chdir $folder and opendir $names, '.') {
        refuse($! + 0) if $given;
        $cut = 1;
        next;
      }
      $out .= "D$path\\0";
      $bytes += length $path;
      for (;;) {
        $! = 0;
        my $name = readdir $names;
        unless (defined $name) {
          $cut = 1 if $!;
          last;
        }
        next if $name eq '.' || $name eq '..';
        if ($entries == $most_entries || $bytes >= $most_bytes || ($entries & 127) == 0 && time > $until) {
          $cut = 1;
          last DEPTH;
        }
        # One that is gone by now.
        lstat $name or next;
        my $is_folder = -d _;
        $entries += 1;
        $bytes += length($root) + length($path) + 2 * length($name);
        $out .= ($is_folder ? 'd' : 'f') . "$name\\0";
        push @below, "$path/$name" if $is_folder;
        if (length $out >= $piece) {
          say_all($out);
          $out = '';
        }
      }
    }
    @level = @below;
  }
  say_all($out . 'E' . ($cut ? 'T' : 'C'));
}

${WRITE_PROGRAM}
sub serve {
  my ($verb, $path, @numbers) = split /\\0/, take(hex take(8));
  @numbers = map { $_ + 0 } @numbers;
  if ($verb eq 'read') { read_file($path, @numbers); }
  elsif ($verb eq 'list') { list($path, @numbers); }
  elsif ($verb eq 'write') { write_file($path, take($numbers[0])); }
}

socket(my $server, 1, 1, 0) or die "socket: $!\\n";
unlink $listen_at;
bind($server, pack('S a*', 1, "$listen_at\\0")) or die "$listen_at: $!\\n";
listen($server, 128) or die "listen: $!\\n";
$SIG{CHLD} = 'IGNORE';
$| = 1;
print "ready\\n";
my $watched = '';
vec($watched, fileno(STDIN), 1) = 1;
vec($watched, fileno($server), 1) = 1;
for (;;) {
  my $ready = $watched;
  next unless select($ready, undef, undef, undef) > 0;
  # The daemon has ended.
  exit 0 if vec($ready, fileno(STDIN), 1);
  next unless accept($peer, $server);
  my $child = fork;
  if (!defined $child) {
    syswrite($peer, 'no ' . ($! + 0) . "\\n");
  } elsif ($child == 0) {
    alarm $seconds;
    close $server;
    become_tenant();
    serve();
    exit 0;
  }
  close $peer;
}
`;
