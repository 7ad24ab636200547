"""A crawler that fetches each page of a site at most once a week, however often it is run, except the one it begins with.

What was fetched is remembered by `lately serve`, for all crawlers that ask it, in some five bytes per page. They use
scrapy-redis' own filter and redis-py, unchanged; the server's configuration says that its sets have a window.

    lately serve --config crawler.toml &
    pip install scrapy scrapy-redis
    python3 crawler.py https://example.org/
"""

import sys

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy_redis.connection import get_redis_from_settings
from scrapy_redis.dupefilter import RFPDupeFilter


class Fetched(RFPDupeFilter):
    """The pages that were fetched within the window, by whichever crawler."""

    @classmethod
    def from_settings(cls, settings):
        return cls(get_redis_from_settings(settings), key="pages:dupefilter")

    def close(self, reason=""):
        # It outlives the run: scrapy-redis would delete it.
        pass


class Site(scrapy.Spider):
    name = "site"

    def parse(self, response):
        yield {"url": response.url}
        for link in response.css("a::attr(href)"):
            yield response.follow(link, self.parse)


if __name__ == "__main__":
    start = sys.argv[1]
    crawler = CrawlerProcess(
        {
            "REDIS_URL": "redis://localhost:7379",
            "DUPEFILTER_CLASS": Fetched,
            "LOG_LEVEL": "WARNING",
            "FEEDS": {"stdout:": {"format": "jsonlines"}},
        }
    )
    crawler.crawl(Site, start_urls=[start], allowed_domains=[start.split("/")[2].split(":")[0]])
    crawler.start()
