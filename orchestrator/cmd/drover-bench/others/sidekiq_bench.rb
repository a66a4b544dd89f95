# Drains no-op tasks with Sidekiq: four processes of sixteen threads. Arguments: port of Redis, tasks. Prints the seconds.
require 'sidekiq'
require 'redis'

port = ENV['BENCH_PORT'] || ARGV[0]
Sidekiq.configure_server { |c| c.redis = { url: "redis://127.0.0.1:#{port}/0" } }
Sidekiq.configure_client { |c| c.redis = { url: "redis://127.0.0.1:#{port}/0" } }

class Noop
  include Sidekiq::Worker
  def perform(_data); end
end

if ENV['BENCH_PORT'].nil?
  n = ARGV[1].to_i
  (0...n).each_slice(1000) { |part| Sidekiq::Client.push_bulk('class' => Noop, 'args' => part.map { ['x' * 89] }) }
  processes = Array.new(4) do
    spawn({ 'BENCH_PORT' => port }, 'sidekiq', '-r', File.expand_path(__FILE__), '-c', '16', out: File::NULL, err: File::NULL)
  end
  redis = Redis.new(port: port.to_i)
  began = nil
  loop do
    done = redis.get('stat:processed').to_i
    began ||= Process.clock_gettime(Process::CLOCK_MONOTONIC) if done.positive? || redis.llen('queue:default') < n
    break if redis.llen('queue:default').zero?
    sleep 0.002
  end
  puts Process.clock_gettime(Process::CLOCK_MONOTONIC) - began
  processes.each { |p| Process.kill('TERM', p) }
end
