//! Rates.

use std::time::Duration;

use tests::clock;
use tests::netlab::{DropReason, Impairment, Rate, be_punctual};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::measure::{LIMIT, MS, Train, pair, send_numbered};

#[tokio::test]
async fn udp_gets_the_rate_and_no_more_than_the_queue() {
    let Some((lab, a, b)) = pair("rate") else { return };
    be_punctual();
    // 1,000 bytes of IP packet every millisecond; twice that is offered for a second.
    let rate = Rate { bits_per_second: 8_000_000, burst_bytes: 3000, queue_bytes: 50_000 };
    lab.link(&a, &b).set(Impairment::default().rate(rate)).unwrap();
    let train = Train { count: 2000, bytes: 1000 - 28, burst: 20, gap: MS * 10 };
    let arrivals = send_numbered(&lab, &a, &b, train).await;
    let (first, last) = (arrivals[0].received, arrivals[arrivals.len() - 1].received);
    let got = (arrivals.len() - 1) as f64 * 8000.0 / (last - first).as_secs_f64();
    assert!((got / 8e6 - 1.0).abs() < 0.1, "asked 8 Mbit/s, got {got}");
    let full = lab.link(&a, &b).stats().unwrap().dropped(DropReason::QueueFull);
    assert_eq!(full + arrivals.len() as u64, 2000);
    assert!(full > 500, "{full}");
    // The queue is 50 ms long; the median is full, whatever the machine does.
    let mut flights: Vec<Duration> = arrivals.iter().map(|arrival| arrival.flight()).collect();
    flights.sort_unstable();
    let median = flights[flights.len() / 2];
    assert!((MS * 35..=MS * 55).contains(&median), "{median:?}");
}

#[tokio::test]
async fn tcp_fills_the_rate() {
    let Some((lab, a, b)) = pair("tcprate") else { return };
    be_punctual();
    let rate = Rate::bits_per_second(20_000_000);
    lab.link(&a, &b).set_both(Impairment::delay(MS * 5).rate(rate)).unwrap();
    let listener = TcpListener::from_std(b.tcp_listener(0).unwrap()).unwrap();
    let address = b.addr(listener.local_addr().unwrap().port());
    let send = async {
        let mut stream = a.connect(address).await.unwrap();
        let bytes = vec![7; 64 * 1024];
        // Ends when the receiver has enough.
        while stream.write_all(&bytes).await.is_ok() {}
    };
    let receive = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = vec![0; 64 * 1024];
        let mut take = async |wanted: usize| {
            let mut taken = 0;
            while taken < wanted {
                taken += stream.read(&mut buffer).await.unwrap();
            }
            taken
        };
        // Without the start, in which TCP looks for the rate.
        take(1_000_000).await;
        let start = clock::now();
        let taken = take(4_000_000).await;
        (taken, start.elapsed())
    };
    let ((), (taken, time)) = timeout(LIMIT, async { tokio::join!(send, receive) }).await.unwrap();
    // 52 of 1,500 bytes are headers.
    let got = taken as f64 * 8.0 / time.as_secs_f64() * 1500.0 / 1448.0;
    assert!((got / 2e7 - 1.0).abs() < 0.1, "asked 20 Mbit/s, got {got}");
}
